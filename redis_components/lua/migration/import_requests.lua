-- Move requests from where they were set aside into the queue or, with a reason, among the dead; in the order in which scrapy-redis would have popped them.
--
-- KEYS[1] aside     (zset or list)  requests of scrapy-redis
-- KEYS[2] ready     (zset)  READY requests
-- KEYS[3] counters  (hash)  layout version, order number
-- KEYS[4] dead      (list)  DEAD requests and start tasks with their reasons
-- ARGV[1] order     (text)  priority, fifo, lifo or random
-- ARGV[2] first     (any number)  for each member from the first one on its SHA-1, what becomes of it ('payload', 'kept', 'dead'), and the payload, nothing, or the reason; at most 500
-- Returns: {outcome, how many}: 'moved', or 'layout' (another layout version: nothing changed); it stops at the first member that is not the expected one
-- Retry: safe; what was moved is not the first one any more
local aside, ready, counters, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local order, first = ARGV[1], 2
local LAYOUT = '1'

-- include: clock
-- include: score
-- include: ready_requests
-- include: leases
-- include: order_numbers

if (redis.call('HGET', counters, 'layout') or LAYOUT) ~= LAYOUT then return { 'layout', 0 } end
-- Reading each key once finds a foreign type before anything is written.
redis.call('ZCARD', ready)
redis.call('LLEN', dead)
local kind, now = redis.call('TYPE', aside)['ok'], now_ms()

local function head()
  if kind == 'list' then return redis.call('LINDEX', aside, -1), '0' end -- scrapy-redis writes at the other end
  local found = redis.call('ZRANGE', aside, 0, 0, 'WITHSCORES')
  return found[1], found[2]
end

local function drop(member)
  if kind == 'list' then redis.call('RPOP', aside) else redis.call('ZREM', aside, member) end
end

local count = 0
for at = first, #ARGV, 3 do
  local sha, fate, content = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local member, score = head()
  if not member or redis.sha1hex(member) ~= sha then break end
  score = zset_score(score) or '0'
  if fate == 'dead' then
    bury(dead, now, content, REQUEST, score, string.rep('\0', 9) .. member) -- as it was: a user with a serializer for it can put it back
  else
    enqueue(ready, order, order_numbers(counters, 1) + 1, score, fate == 'kept' and member or content)
  end
  drop(member)
  count = count + 1
end
if count > 0 then redis.call('HSETNX', counters, 'layout', LAYOUT) end
return { 'moved', count }
