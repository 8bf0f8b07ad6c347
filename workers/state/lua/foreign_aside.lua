-- Take a foreign value out of a hash and keep it in another one, if it is still what was looked at.
--
-- KEYS[1] home      (hash)    where it does not belong
-- KEYS[2] aside     (hash)    where it is kept
-- ARGV[1] field     (binary)  its field
-- ARGV[2] expected  (binary)  what was looked at
-- ARGV[3] name      (text)    its field where it is kept
-- Returns: 1 when it was set aside, 0 when something else is there by now (nothing is changed then)
-- Retry: safe; the second call finds it gone
local home, aside = KEYS[1], KEYS[2]
local field, expected, name = ARGV[1], ARGV[2], ARGV[3]

if redis.call('HGET', home, field) ~= expected then return 0 end
redis.call('HSET', aside, name, expected)
redis.call('HDEL', home, field)
return 1
