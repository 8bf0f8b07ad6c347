-- Lanes: requests of sites that have limits, or that asked to be left alone for a time, wait apart from READY, in a zset for each lane whose members and scores
-- are those of READY. Needs lib/score.
--   <ready>:lanes         (zset)  lanes that hold a request -> time (Redis, ms) from which one may be leased; LATER -> when the next of `later` is due
--   <ready>:lane:<lane>   (zset)  its requests
--   <ready>:later         (zset)  requests that carry a time before which they are not leased -> that time in ms; member = score '@' lane '|' member
-- Keys that all crawls of the namespace share begin with the key of the limits:
--   <limits>              (hash)  lane -> JSON {rate, burst, concurrency, weight, quotas = {{n, window in ms}, ...}}; `version`
--   <limits>:<lane>       (hash)  tat, times, base, apart and quotas (see lib/sending), until (ms), step and asked (see `keep_off`), refusals and refused_since, slowed, slowed_at, slowed_top and slowed_return (see `slow_down`), robots_rate,
--                                 robots_of and robots_at (see `robots_store`), <window>:<bucket> -> requests leased in it
--   <limits>:<lane>:busy  (zset)  leases out -> time at which each is forgotten, unless it is settled
--   <limits>:<lane>:turns (hash)  crawl (the key of its READY requests) -> since when it waits for its turn, and when it asked last (ms)
--   <limits>#older        (string) when Redis was seen to have come back with an older state (ms)
-- These keys begin with a declared one, so they are in its slot.

-- So many more in a field; a value that is not a whole number counts as 0.
local function count_in(key, field, change)
  if type(redis.pcall('HINCRBY', key, field, change)) ~= 'number' then redis.call('HSET', key, field, math.max(0, change)) end
end

local LATER = '\1later' -- no lane has such a name

local function older_key(limits)
  return limits .. '#older'
end

local function lanes_of(ready)
  return ready .. ':lanes'
end

-- Number of lanes with requests.
local function count_lanes(ready)
  return redis.call('ZCARD', lanes_of(ready))
end

local function lane_key(ready, lane)
  return ready .. ':lane:' .. lane
end

-- A request into its lane, where one may be leased from now on, or when its time comes.
local function to_lane(ready, lane, score, member)
  redis.call('ZADD', lane_key(ready, lane), score, member)
  redis.call('ZADD', lanes_of(ready), 'NX', 0, lane)
end

local function to_later(ready, lane, score, member, at)
  redis.call('ZADD', ready .. ':later', at, score .. '@' .. lane .. '|' .. member)
  redis.call('ZADD', lanes_of(ready), 'NX', at, LATER)
  redis.call('ZADD', lanes_of(ready), 'XX', 'LT', at, LATER)
end

-- `room` (lib/turns), where sites have none that have `most` requests in their lane: their start tasks wait as they are.
local function full_lanes(ready, most, room)
  if count_lanes(ready) == 0 then return room end
  for _, lane in ipairs(redis.call('ZRANGE', lanes_of(ready), 0, 499)) do
    if lane ~= LATER and redis.call('ZCARD', lane_key(ready, lane)) >= most then room[lane] = 0 end
  end
  return room
end

local function busy_key(limits, lane)
  return limits .. ':' .. lane .. ':busy'
end

-- A request of a lane is not at work any more.
local function leave_lane(limits, lane, lease_key)
  redis.call('ZREM', busy_key(limits, lane), lease_key)
end
