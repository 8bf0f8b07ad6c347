-- The sizes of one crawl at one moment. A script and not MULTI: while it is out of memory, when they are wanted most, Redis refuses that.
--
-- KEYS[1] start_tasks  (list, set or zset)  start tasks that wait
-- KEYS[2] ready        (zset, any)  READY requests, or what a queue class of the user's keeps
-- KEYS[3] counters     (hash)  leases out, totals, whether there is such a class
-- KEYS[4] dead         (list)  DEAD requests and start tasks
-- KEYS[5] fingerprints (set, hash, any)  fingerprints of requests ever stored: a plain set, the hash of another dupefilter (lib/filter_state), or a user's
-- KEYS[6] item_stream  (list)  item stream
-- KEYS[7] bad_items    (list)  items that the database refused
-- KEYS[8] owners       (zset)  owners, score = time at which each counts as dead, in ms
-- KEYS[9] stats_hash   (hash)  stats over all processes, as many as the spider names
-- KEYS[10] ready_aside (zset)  READY requests where a queue class of the user's has their key
-- KEYS[11] backlog     (list)  start tasks of a backfill that may not be taken yet
-- KEYS[12] threads     (hash)  what is stored of each thread
-- KEYS[13] start_tokens (hash)  change tokens of start tasks that another service has made
-- KEYS[14] overflow    (hash)  start tasks that another service has made and for which the start key has no capacity
-- KEYS[15] more_task_keys (any number)  further start keys (list, set or zset)
-- Returns: {start tasks, ready, {leased, leased_tasks, acked, reclaimed, parked, parked_tasks}, dead, fingerprints, items, bad items, live owners, {stat, value, ...},
--           {form, layers} of a dupefilter other than a plain set, {backlog, threads, tokens, overflow}, bytes that items and bad items take,
--           time in ms since which the oldest READY request waits or 0}
-- Retry: safe; it only reads
local start_tasks, ready, counters, dead, fingerprints = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local item_stream, bad_items, owners, stats_hash = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local ready_aside, backlog, threads, start_tokens = KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local overflow = KEYS[14]
local more_task_keys = 15

-- include: clock
-- include: item_memory
-- include: lanes
-- include: ages

local MOST_LANES = 10000
local MOST_AGED = 500 -- lanes whose oldest request is looked at

local held = redis.call('TYPE', fingerprints)['ok']
local filter = held == 'hash' and redis.call('HMGET', fingerprints, 'size', 'form', 'layers')
local function waiting_in(key)
  local size = ({ list = 'LLEN', set = 'SCARD', zset = 'ZCARD' })[redis.call('TYPE', key)['ok']]
  return size and redis.call(size, key) or 0
end

local custom_queue = redis.call('HGET', counters, 'custom_queue')
local queue = custom_queue and ready_aside or ready

-- Since when the oldest READY request waits, in ms; 0: none does, or it is not known.
local function oldest_ready()
  if custom_queue then return 0 end
  local time = redis.call('TIME')
  local now_us = time[1] * 1e6 + time[2]
  local oldest = oldest_us(queue, now_us) or now_us
  for _, lane in ipairs(redis.call('ZRANGE', lanes_of(queue), 0, MOST_AGED - 1)) do
    if lane ~= LATER then oldest = math.min(oldest, oldest_us(lane_key(queue, lane), now_us) or now_us) end
  end
  return oldest < now_us and math.floor(oldest / 1000) or 0
end

local function ready_requests()
  local count = redis.call('ZCARD', queue)
  for _, lane in ipairs(redis.call('ZRANGE', lanes_of(queue), 0, MOST_LANES - 1)) do
    count = count + redis.call('ZCARD', lane == LATER and queue .. ':later' or lane_key(queue, lane))
  end
  return count
end

local waiting = waiting_in(start_tasks)
for place = more_task_keys, #KEYS do waiting = waiting + waiting_in(KEYS[place]) end
return {
  waiting,
  ready_requests(),
  redis.call('HMGET', counters, 'leased', 'leased_tasks', 'acked', 'reclaimed', 'parked', 'parked_tasks'),
  redis.call('LLEN', dead),
  filter and tonumber(filter[1] or 0) or (held == 'set' and redis.call('SCARD', fingerprints) or 0),
  redis.call('LLEN', item_stream),
  redis.call('LLEN', bad_items),
  redis.call('ZCOUNT', owners, now_ms(), '+inf'),
  redis.call('HGETALL', stats_hash),
  filter and { filter[2] or '', filter[3] or '' } or { '', '' },
  { redis.call('LLEN', backlog), redis.call('HLEN', threads), redis.call('HLEN', start_tokens), redis.call('HLEN', overflow) },
  bytes_of(item_stream, bad_items),
  oldest_ready(),
}
