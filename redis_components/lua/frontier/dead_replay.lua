-- Put DEAD requests and start tasks back where they came from: a request with its score, no attempts and a new order number.
--
-- KEYS[1] dead         (list)  DEAD requests and start tasks with their reasons
-- KEYS[2] ready        (zset)  READY requests
-- KEYS[3] start_tasks  (list, set or zset)  start tasks of this spider
-- KEYS[4] counters     (hash)  layout version, order number, whether a queue class of the user's has the key of the READY requests
-- KEYS[5] ready_aside  (zset)  READY requests, in that case
-- ARGV[1] chosen       (any number)  for each entry its place from the head, its SHA-1, its kind, its score, its start key or ''; at most 500, by rising place
-- Returns: {outcome, how many}: 'replayed', or 'layout' (another layout version: nothing changed); entries that are not at their place any more are left out
-- Retry: safe; what was taken is not at its place any more
local dead, ready, start_tasks, counters, ready_aside = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local chosen = 1
local LAYOUT = '1'

-- include: score
-- include: leases
-- include: order_numbers
-- include: dead

if (redis.call('HGET', counters, 'layout') or LAYOUT) ~= LAYOUT then return { 'layout', 0 } end
if redis.call('HGET', counters, 'custom_queue') then ready = ready_aside end
-- Reading each key once finds a foreign type before anything is written.
redis.call('ZCARD', ready)
local waits = redis.call('TYPE', start_tasks)['ok']
if waits ~= 'none' and waits ~= 'list' and waits ~= 'set' and waits ~= 'zset' then
  return redis.error_reply('WRONGTYPE ' .. start_tasks .. ' is a ' .. waits)
end

local count = 0
for at = chosen, #ARGV, 5 do
  local place, sha, kind, score, key = ARGV[at], ARGV[at + 1], ARGV[at + 2], zset_score(ARGV[at + 3]) or 0, ARGV[at + 4]
  local entry = entry_at(dead, place, sha)
  if entry then
    local payload = payload_of_dead(entry)
    if kind == REQUEST then
      local number = order_numbers(counters, 1) + 1
      redis.call('ZADD', ready, score, struct.pack('>I8', number) .. '\0' .. payload)
    else
      put_back(ready, start_tasks, kind, score, payload, key ~= '' and key or start_tasks)
    end
    mark_taken(dead, place) -- after it is back: a score or a counter that Redis refuses leaves it where it was
    count = count + 1
  end
end
sweep(dead, count, ARGV[chosen])
return { 'replayed', count }
