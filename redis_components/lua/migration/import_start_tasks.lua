-- Rewrite start tasks where they stand: what they were is replaced by what they shall be.
--
-- KEYS[1] start_tasks  (list, set or zset)  start tasks that wait for a crawler
-- ARGV[1] changes      (any number)  for each its place in a list from the head ('' in a set or zset), what it is, what it becomes; at most 500
-- Returns: how many; a task that is not (or not there) any more is left out
-- Retry: safe; what was changed is not there any more
local start_tasks = KEYS[1]
local changes = 1

local kind, count = redis.call('TYPE', start_tasks)['ok'], 0
for at = changes, #ARGV, 3 do
  local place, old, new = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local score = kind == 'zset' and redis.call('ZSCORE', start_tasks, old)
  if kind == 'list' and redis.call('LINDEX', start_tasks, place) == old then
    redis.call('LSET', start_tasks, place, new)
    count = count + 1
  elseif kind == 'set' and redis.call('SREM', start_tasks, old) == 1 then
    redis.call('SADD', start_tasks, new)
    count = count + 1
  elseif score then
    redis.call('ZREM', start_tasks, old)
    redis.call('ZADD', start_tasks, score, new)
    count = count + 1
  end
end
return count
