-- Note that a request is about to be stored, before a dupefilter class of the user's is asked about it; forget such notes.
--
-- KEYS[1] intents      (hash)  fingerprint -> owner that is about to store the request, behind a '!' if one before it was and is gone
-- KEYS[2] owners       (zset)  owners, score = time at which each counts as dead, in ms
-- ARGV[1] owner        (text)    the process that asks
-- ARGV[2] fingerprint  (binary)  '' = only forget
-- ARGV[3] forget       (any number)  fingerprints whose requests are stored, or were found to be duplicates
-- Returns: 1 where an owner that is gone had noted the request and may not have stored it, else 0
-- Retry: safe; the same note and the same answer
local intents, owners = KEYS[1], KEYS[2]
local owner, fingerprint = ARGV[1], ARGV[2]
local forget = 3

-- include: clock

redis.call('ZCARD', owners) -- a foreign type is found before anything is written
for at = forget, #ARGV do redis.call('HDEL', intents, ARGV[at]) end
if fingerprint == '' then return 0 end
local again, by = string.match(redis.call('HGET', intents, fingerprint) or '', '^(!?)(.*)$')
if by == owner then return again == '!' and 1 or 0 end
if by ~= '' and tonumber(redis.call('ZSCORE', owners, by) or 0) > now_ms() then return 0 end
redis.call('HSET', intents, fingerprint, (by ~= '' and '!' or '') .. owner)
return by ~= '' and 1 or 0
