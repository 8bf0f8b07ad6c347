-- How many requests wait in lanes, and since when the oldest of each does.
--
-- KEYS[1] lanes  (any number)  READY requests of lanes (zset), of one crawl
-- Returns: for each lane its size and the time in ms (Redis) since which its oldest request waits, 0 where that is not known
-- Retry: safe; it only reads
local lanes = 1

-- include: ages

local time, told = redis.call('TIME'), {}
local now_us = time[1] * 1e6 + time[2]
for at = lanes, #KEYS do
  told[#told + 1] = redis.call('ZCARD', KEYS[at])
  told[#told + 1] = math.floor((oldest_us(KEYS[at], now_us) or 0) / 1000)
end
return told
