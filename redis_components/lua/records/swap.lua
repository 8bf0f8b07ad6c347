-- Write a field in the place of what was read there, if it has not changed meanwhile.
--
-- KEYS[1] notes     (hash)  what several processes may want to change
-- ARGV[1] field     (text)  which of them
-- ARGV[2] expected  (text)  what the caller has read there; empty: nothing
-- ARGV[3] value     (text)  what shall be there; empty: nothing
-- Returns: 1 when the value is there now, 0 when another process was quicker (nothing is changed then)
-- Retry: safe; a value that is there already counts as written
local notes = KEYS[1]
local field, expected, value = ARGV[1], ARGV[2], ARGV[3]

local found = redis.call('HGET', notes, field) or ''
if found == value then return 1 end
if found ~= expected then return 0 end
if value == '' then redis.call('HDEL', notes, field) else redis.call('HSET', notes, field, value) end
return 1
