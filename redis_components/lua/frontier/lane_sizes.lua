-- Return the number of requests in each lane, and the time from which one may be leased.
--
-- KEYS[1] lanes     (zset)  lanes that hold a request -> time (Redis, ms) from which one may be leased
-- KEYS[2] of_lanes  (any number)  READY requests of lanes (zset)
-- ARGV[1] names     (any number)  the names of these lanes
-- Returns: for each lane '' where it holds nothing, else the time as text; its size
-- Retry: safe; it only reads
local lanes = KEYS[1]
local of_lanes, names = 2, 1

local sizes = {}
for place = names, #ARGV do
  local due = redis.call('ZSCORE', lanes, ARGV[place])
  sizes[#sizes + 1] = due or ''
  sizes[#sizes + 1] = due and redis.call('ZCARD', KEYS[of_lanes + place - names]) or 0
end
return sizes
