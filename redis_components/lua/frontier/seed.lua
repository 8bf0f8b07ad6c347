-- Put start tasks into the start key, in the order given, while there is room; never one that is pending already.
--
-- KEYS[1] start_tasks  (list)  start tasks that wait
-- KEYS[2] pending      (hash)  task id -> time of seeding in ms, of scans that have not ended
-- KEYS[3] seeded       (hash)  task id -> time of the last seeding in ms
-- KEYS[4] turns        (zset)  start tasks that wait for the turn of their site
-- ARGV[1] max_pending  (count) most tasks that may be pending
-- ARGV[2] pending_ms   (ms)    age at which a pending mark counts as forgotten
-- ARGV[3] force        (0, 1)  1: also what was seeded just now
-- ARGV[4] tasks        (any number)  for each task its id, the time that must lie between two seedings in ms, its data
-- Returns: for each task in the order given {outcome, ms}: 'seeded', 'pending' (since ms), 'early' (due at ms), 'full' (limit, not ms)
-- Retry: safe; what was seeded by the first call is pending at the second
local start_tasks, pending, seeded, turns = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local max_pending, pending_ms, force = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local tasks = 4

-- include: clock
-- include: fence

local now = now_ms()
-- Foreign types are found before anything is written.
redis.call('HLEN', seeded)
local room = max_pending - math.max(redis.call('HLEN', pending), redis.call('LLEN', start_tasks) + redis.call('ZCARD', turns))
local outcomes = {}
for at = tasks, #ARGV, 3 do
  local id, wait, place = ARGV[at], tonumber(ARGV[at + 1]), #outcomes + 1
  local since = fence_of(redis.call('HGET', pending, id))
  if since == 0 or since > now + 86400000 then since = nil end -- text, or a time in the future: foreign
  local before = fence_of(redis.call('HGET', seeded, id))
  local due_at = (before <= now + 86400000 and before or 0) + wait
  if since and since > now - pending_ms then
    outcomes[place] = { 'pending', since }
  elseif due_at > now and not force then
    outcomes[place] = { 'early', due_at }
  elseif room < 1 and not since then -- a forgotten mark takes no new room
    outcomes[place] = { 'full', max_pending }
  else
    redis.call('RPUSH', start_tasks, ARGV[at + 2])
    redis.call('HSET', pending, id, now)
    redis.call('HSET', seeded, id, now)
    if not since then room = room - 1 end
    outcomes[place] = { 'seeded', now }
  end
end
return outcomes
