-- Order numbers: the time of storing in microseconds (Redis), or one more than the last number where that is later. So they grow, and give the time that an
-- entry has waited (lib/ages). A clock beyond 2112 gives no numbers: those of the order `lifo` count down from 2^52.

-- The number before the first of `count` new ones. Redis refuses a foreign counter, and all of it while it is out of memory: nothing else may be written before.
local function order_numbers(counters, count)
  local last = redis.call('HINCRBY', counters, 'order', count) - count
  local time = redis.call('TIME')
  local now_us = time[1] * 1e6 + time[2]
  if now_us <= last or now_us + count >= 2 ^ 52 then return last end
  redis.call('HSET', counters, 'order', string.format('%.0f', now_us + count))
  return now_us
end
