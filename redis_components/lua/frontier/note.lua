-- Note that a request is about to be stored, before a dupefilter class of the user's is asked about it; forget such notes.
--
-- KEYS[1] notes        (hash)    fingerprint -> owner that is about to store the request, behind a '!' if one before it was and is gone
-- KEYS[2] owners       (zset)    owners, score = time at which each counts as dead, in ms
-- ARGV[1] owner        (text)    the process that asks
-- ARGV[2] fingerprint  (binary)  '' = only forget
-- ARGV[3] forget       (any number)  fingerprints whose requests were found to be duplicates
-- Returns: 'noted', 'again' (an owner that is gone had noted it, and may not have stored it), or 'busy' (a living owner is about to store it)
-- Retry: safe; a second try finds 'busy' in place of 'noted', whose request is then stored without its note
local notes, owners = KEYS[1], KEYS[2]
local owner, fingerprint = ARGV[1], ARGV[2]
local forget = 3

-- include: clock

redis.call('ZCARD', owners) -- a foreign type is found before anything is written
for at = forget, #ARGV do redis.call('HDEL', notes, ARGV[at]) end
if fingerprint == '' then return 'noted' end
local again, by = string.match(redis.call('HGET', notes, fingerprint) or '', '^(!?)(.*)$')
if by == owner then return again == '!' and 'again' or 'busy' end
if tonumber(redis.call('ZSCORE', owners, by) or 0) > now_ms() then return 'busy' end
redis.call('HSET', notes, fingerprint, (by ~= '' and '!' or '') .. owner)
return by ~= '' and 'again' or 'noted'
