-- Start tasks from outside, with task ids: of each id one waits, and it is the newest. Tasks that are requested by name wait, however many wait already (no overflow).
--
-- KEYS[1] fed_tasks    (list, set or zset)  start tasks of the service
-- KEYS[2] fed_turns    (zset)  of these, those that wait for the turn of their site
-- KEYS[3] fed_ids      (hash)  SHA-1 of a task -> its task id (lib/tasks_by_id)
-- KEYS[4] fed_waiting  (hash)  task id -> newest form of the task that waits
-- KEYS[5] overflow     (hash)  task id -> task for which the start key has no capacity
-- KEYS[6] overflow_order (zset)  these, by site and age
-- KEYS[7] later_tasks  (list)  where the tasks go whose ids do not wait in the start key, with to_lane = 1
-- ARGV[1] newest_fields (msgpack array of text)  what a wide task that waits gets from a newer one
-- ARGV[2] to_lane      (0, 1)  1: into the lane
-- ARGV[3] tasks        (any number)  for each its id, 1 if it is wide or 0, its text; at most 500
-- Returns: tasks that wait then, in the start key or in the lane
-- Retry: safe for the start key, where the same task takes its own place; a lane gets it twice
local fed_tasks, fed_turns, fed_ids, fed_waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local overflow, overflow_order, later_tasks = KEYS[5], KEYS[6], KEYS[7]
local newest_fields, to_lane = cmsgpack.unpack(ARGV[1]), ARGV[2] == '1'
local tasks = 3

-- include: clock
-- include: score
-- include: leases
-- include: tasks
-- include: tasks_by_id

-- Reading each key once finds a foreign type before anything is written.
for _, check in ipairs({
  { count_command(fed_tasks), fed_tasks }, { 'ZCARD', fed_turns }, { 'HLEN', fed_ids }, { 'HLEN', fed_waiting }, { 'HLEN', overflow }, { 'ZCARD', overflow_order },
  { 'LLEN', later_tasks },
}) do
  redis.call(check[1], check[2])
end
local fed = {
  tasks = fed_tasks, turns = fed_turns, ids = fed_ids, waiting = fed_waiting, overflow = overflow, overflow_order = overflow_order,
  newest_fields = newest_fields, now = now_ms(),
}
forget_if_empty(fed)
for at = tasks, #ARGV, 3 do
  local id, task = ARGV[at], { wide = tonumber(ARGV[at + 1]), data = ARGV[at + 2] }
  if not to_lane then
    make_task(fed, id, task, '')
  elseif is_apart(fed, id, task) then
    redis.call('RPUSH', later_tasks, task.data)
  end
end
if to_lane then return redis.call('LLEN', later_tasks) end
return redis.call(count_command(fed_tasks), fed_tasks) + redis.call('ZCARD', fed_turns)
