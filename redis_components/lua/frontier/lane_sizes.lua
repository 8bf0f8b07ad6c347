-- Return the number of requests in each lane, the age of the oldest, and the time from which one may be leased.
--
-- KEYS[1] lanes     (zset)  lanes that hold a request -> time (Redis, ms) from which one may be leased
-- KEYS[2] of_lanes  (any number)  READY requests of lanes (zset)
-- ARGV[1] names     (any number)  the names of these lanes
-- Returns: for each lane '' where it holds nothing, else the time as text; its size; the time in ms since which its oldest request waits, 0 where that is not
--          known
-- Retry: safe; it only reads
local lanes = KEYS[1]
local of_lanes, names = 2, 1

-- include: ages

local time, sizes = redis.call('TIME'), {}
local now_us = time[1] * 1e6 + time[2]
for place = names, #ARGV do
  local due, key = redis.call('ZSCORE', lanes, ARGV[place]), KEYS[of_lanes + place - names]
  local n = #sizes
  sizes[n + 1], sizes[n + 2], sizes[n + 3] = due or '', 0, 0
  if due then
    sizes[n + 2] = redis.call('ZCARD', key)
    sizes[n + 3] = math.floor((oldest_us(key, now_us) or 0) / 1000)
  end
end
return sizes
