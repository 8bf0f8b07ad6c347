-- Write what is stored of threads in the place of what was read of them, where nobody has written since.
--
-- KEYS[1] threads  (hash)  thread id -> msgpack array
-- ARGV[1] entries  (any number)  for each thread its id, its record as it was read, its record
-- Returns: number of records written
-- Retry: safe; what was written is not what was read
local threads = KEYS[1]
local entries, written = 1, 0

for at = entries, #ARGV, 3 do
  if redis.call('HGET', threads, ARGV[at]) == ARGV[at + 1] then
    redis.call('HSET', threads, ARGV[at], ARGV[at + 2])
    written = written + 1
  end
end
return written
