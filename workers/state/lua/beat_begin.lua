-- Begin one round of a scheduled task: once, however often its message was sent or delivered, and never behind a newer leader's.
--
-- KEYS[1] begun   (hash)    '<token>|<due, ms>' of the last round of each entry that a worker has begun
-- ARGV[1] name    (text)    the entry
-- ARGV[2] token   (number)  of the beat that sent it
-- ARGV[3] due_ms  (ms)      which round
-- Returns: 'begun' or 'repeated' (nothing changed)
-- Retry: unsafe; the second call gets 'repeated', and the round is left out
local begun = KEYS[1]
local name, token, due_ms = ARGV[1], ARGV[2], ARGV[3]

-- include: fence

local last_token, last_due = string.match(redis.call('HGET', begun, name) or '', '^(%d+)|(%d+)$')
if last_due == due_ms or fence_of(last_token) > tonumber(token) then return 'repeated' end
redis.call('HDEL', begun, name) -- first: it is allowed also while Redis is out of memory, and after it the rest is
redis.call('HSET', begun, name, token .. '|' .. due_ms)
return 'begun'
