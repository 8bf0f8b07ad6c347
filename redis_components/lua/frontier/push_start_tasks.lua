-- Append start tasks in the order given: to a list, a set or a sorted set, by the key's type; up to as many as may wait.
--
-- KEYS[1] start_tasks  (list, set or zset)  start tasks that wait; a list where there is none
-- KEYS[2] stats_hash   (hash)  stats of the crawl
-- KEYS[3] more_task_keys (any number)  further keys with start tasks that wait
-- ARGV[1] max_waiting  (count) most tasks that may wait; 0: any number
-- ARGV[2] tasks        (any number)  for each its priority, its text
-- Returns: {number of tasks that were queued: the first ones, tasks that wait then}
-- Retry: unsafe; a list gets the tasks twice
local start_tasks, stats_hash = KEYS[1], KEYS[2]
local more_task_keys = 3
local max_waiting = tonumber(ARGV[1])
local tasks = 2

-- include: clock
-- include: score
-- include: leases
-- include: tasks

local start_keys = { start_tasks }
for at = more_task_keys, #KEYS do start_keys[#start_keys + 1] = KEYS[at] end
local kind, waiting, queued = redis.call('TYPE', start_tasks)['ok'], count_tasks(start_keys), 0
for at = tasks, #ARGV, 2 do
  local priority, text = ARGV[at], ARGV[at + 1]
  local has_room = max_waiting == 0 or waiting < max_waiting
  if kind == 'set' then
    if not has_room and redis.call('SISMEMBER', start_tasks, text) == 0 then break end
    waiting = waiting + redis.call('SADD', start_tasks, text)
  elseif kind == 'zset' then
    if not has_room and not redis.call('ZSCORE', start_tasks, text) then break end
    waiting = waiting + redis.call('ZADD', start_tasks, priority, text)
  else
    if not has_room then break end
    redis.call('RPUSH', start_tasks, text)
    waiting = waiting + 1
  end
  queued = queued + 1
end
-- pcall: what others have written there must not stop the seeding.
if queued > 0 then redis.pcall('HINCRBY', stats_hash, 'start_tasks/queued', queued) end
return { queued, waiting }
