-- Put start tasks that are due into the start key, most overdue first, while there is room; never one that is pending already.
--
-- KEYS[1] start_tasks  (list)  start tasks that wait
-- KEYS[2] pending      (hash)  task id -> time of seeding in ms, of scans that have not ended
-- KEYS[3] seeded       (hash)  task id -> time of the last seeding in ms
-- ARGV[1] max_pending  (count) most tasks that may be pending
-- ARGV[2] pending_ms   (ms)    age at which a pending mark counts as forgotten
-- ARGV[3] force        (0, 1)  1: also what is not due
-- ARGV[4] tasks        (any number)  for each task its id, its interval in ms, its data
-- Returns: for each task in the order given {outcome, ms}: 'seeded', 'pending' (since ms), 'early' (due at ms), 'full' (limit, not ms)
-- Retry: safe; what was seeded by the first call is pending at the second
local start_tasks, pending, seeded = KEYS[1], KEYS[2], KEYS[3]
local max_pending, pending_ms, force = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local tasks = 4

-- include: clock

local now = now_ms()
redis.call('LLEN', start_tasks) -- a foreign type is found before anything is written
local outcomes, due = {}, {}
for at = tasks, #ARGV, 3 do
  local id, interval, place = ARGV[at], tonumber(ARGV[at + 1]), #outcomes + 1
  local since = tonumber(redis.call('HGET', pending, id) or nil)
  local due_at = tonumber(redis.call('HGET', seeded, id) or 0) + interval
  if since and since > now - pending_ms then
    outcomes[place] = { 'pending', since }
  elseif due_at > now and not force then
    outcomes[place] = { 'early', due_at }
  else
    outcomes[place] = { 'full', max_pending }
    redis.call('HDEL', pending, id) -- a forgotten mark takes no room
    due[#due + 1] = { place = place, id = id, data = ARGV[at + 2], due_at = due_at }
  end
end
table.sort(due, function(a, b) return a.due_at < b.due_at or (a.due_at == b.due_at and a.place < b.place) end)
local room = max_pending - math.max(redis.call('HLEN', pending), redis.call('LLEN', start_tasks))
for place, task in ipairs(due) do
  if place > room then break end
  redis.call('RPUSH', start_tasks, task.data)
  redis.call('HSET', pending, task.id, now)
  redis.call('HSET', seeded, task.id, now)
  outcomes[task.place] = { 'seeded', now }
end
return outcomes
