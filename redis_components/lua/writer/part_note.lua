-- Note the part that a consumer is about to write. Works while Redis is out of memory: DEL is always allowed, and after a first write so is SET.
--
-- KEYS[1] writer  (string)  '<token>|<number of the last settled batch>' of the holder
-- KEYS[2] part    (string)  the part that was begun, as JSON
-- ARGV[1] token   (text)    the consumer
-- ARGV[2] note    (text)    the part
-- Returns: 1, or 0 where the lock is another consumer's (nothing changed)
-- Retry: safe; the same note again
local writer, part = KEYS[1], KEYS[2]
local token, note = ARGV[1], ARGV[2]

if string.match(redis.call('GET', writer) or '', '^(.*)|%d+$') ~= token then return 0 end
redis.call('DEL', part)
redis.call('SET', part, note)
return 1
