-- Give the lock of an item stream back, so that the next writer need not wait until it runs out.
--
-- KEYS[1] writer  (string)  '<token>|<number of the last settled batch>' of the holder
-- ARGV[1] token   (text)    names the writer
-- Returns: 'released' or 'not_held' (nothing changed)
-- Retry: safe; the second call finds nothing to release
local writer = KEYS[1]
local token = ARGV[1]

if string.match(redis.call('GET', writer) or '', '^(.*)|%d+$') ~= token then return 'not_held' end
redis.call('DEL', writer)
return 'released'
