-- Replace records of threads that have not changed since they were read.
--
-- KEYS[1] threads  (hash)  thread id -> msgpack array
-- ARGV[1] entries  (any number)  for each thread its id, its record as it was read, its record
-- Returns: number of records written
-- Retry: safe; a replaced record differs from the one that was read
local threads = KEYS[1]
local entries, written = 1, 0

for at = entries, #ARGV, 3 do
  if redis.call('HGET', threads, ARGV[at]) == ARGV[at + 1] then
    redis.call('HSET', threads, ARGV[at], ARGV[at + 2])
    written = written + 1
  end
end
return written
