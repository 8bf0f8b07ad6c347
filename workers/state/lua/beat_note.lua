-- Note that a round of a scheduled task is about to be sent, or that it was: only the leading beat may.
-- A round that was noted as `due` and never as `sent` is sent by the next leader.
--
-- KEYS[1] leader  (string)  '<token>|<owner>' of the beat that sends
-- KEYS[2] runs    (hash)    '<due, ms>|<last sending, ms, or 0>|<state>' of each entry
-- ARGV[1] token   (number)  what beat_lead returned
-- ARGV[2] name    (text)    the entry
-- ARGV[3] due_ms  (ms)      when the round is due: its name among all rounds of the entry
-- ARGV[4] state   (text)    'seen' (a cron entry that has no round yet counts from here), 'due' or 'sent'
-- Returns: 'noted', or 'lost' when another beat leads by now (nothing is changed then)
-- Retry: safe; the same call again changes no more than the time
local leader, runs = KEYS[1], KEYS[2]
local token, name, due_ms, state = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include: clock

if string.match(redis.call('GET', leader) or '', '^(%d+)|') ~= token then return 'lost' end
local sent = string.match(redis.call('HGET', runs, name) or '', '^%d+|(%d+)|') or '0'
if state == 'sent' then sent = string.format('%.0f', now_ms()) end
redis.call('HDEL', runs, name) -- first: it is allowed also while Redis is out of memory, and after it the rest is
redis.call('HSET', runs, name, due_ms .. '|' .. sent .. '|' .. state)
return 'noted'
