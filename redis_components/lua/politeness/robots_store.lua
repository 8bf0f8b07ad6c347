-- Keep what one process was answered for robots.txt of one origin, for the whole fleet; forget the oldest files beyond the bounds.
--
-- KEYS[1] record    (hash)    see robots_ask.lua; `size` in bytes
-- KEYS[2] index     (zset)    origins -> time in ms at which their file was fetched; the other records' keys are this one, a colon and the origin
-- KEYS[3] bytes     (string)  sum of their sizes
-- KEYS[4] limits    (hash)    limits of lanes (lib/lanes)
-- ARGV[1] origin    (text)    scheme, host and port
-- ARGV[2] kind      (text)    `rules`, `none` (everything is allowed), or `unreachable` (nothing is, for a time)
-- ARGV[3] body      (binary)  compressed
-- ARGV[4] version   (text)    of the body
-- ARGV[5] etag      (text)    validator that the site sent, or ''
-- ARGV[6] modified  (text)    the other validator
-- ARGV[7] keep_ms   (ms)      how long it holds; `unreachable`: after the first failure, twice as long after each further one, half an hour at most
-- ARGV[8] rate      (1/s)     what the file asks for as `Crawl-delay` or `Request-rate`; '' for none
-- ARGV[9] lane      (text)    the lane that has to keep the rate; '' for none
-- ARGV[10] most     (number)  origins that are kept
-- ARGV[11] most_bytes (bytes)  that they may have in all
-- Returns: {for how many ms it holds, how often in a row it was unreachable}
-- Retry: safe; a file that is stored twice is stored once
local record, index, bytes, limits = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local origin, kind, body, version, etag, modified = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local keep_ms, rate, lane, most, most_bytes = tonumber(ARGV[7]), ARGV[8], ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11])
local LONGEST_FAILURE_MS, MOST_FORGOTTEN, OLD_MS, STATE_S = 1800000, 100, 172800000, 172800

-- include: clock

local now = now_ms()
redis.call('ZCARD', index) redis.call('STRLEN', bytes) redis.call('HLEN', limits) -- a foreign type is found before anything is written

local function forget(one)
  local key = index .. ':' .. one
  redis.call('DECRBY', bytes, tonumber(redis.call('HGET', key, 'size') or 0) or 0)
  redis.call('DEL', key)
  redis.call('ZREM', index, one)
end

local function keep()
  local before = redis.call('HMGET', record, 'size', 'failures')
  local failures = kind == 'unreachable' and (tonumber(before[2] or 0) or 0) + 1 or 0
  if failures > 0 then keep_ms = math.min(keep_ms * 2 ^ math.min(failures - 1, 20), LONGEST_FAILURE_MS) end
  local size = #body + #etag + #modified + 200
  redis.call('INCRBY', bytes, size - (tonumber(before[1] or 0) or 0))
  redis.call('DEL', record)
  redis.call('HSET', record, 'kind', kind, 'body', body, 'version', version, 'etag', etag, 'modified', modified, 'rate', rate, 'size', size,
    'failures', failures, 'until', string.format('%.0f', now + keep_ms))
  redis.call('ZADD', index, now, origin)
  return failures
end

-- The slowest rate that a host of the lane asks for, for two days at most; the request for robots.txt itself was the first one.
local function feed_lane()
  local state = limits .. ':' .. lane
  local known = redis.call('HMGET', state, 'robots_rate', 'robots_of', 'robots_at', 'tat')
  local wanted, slowest = tonumber(rate), tonumber(known[1] or nil)
  local counts = slowest and known[2] ~= origin and (tonumber(known[3] or 0) or 0) > now - OLD_MS
  if not wanted then
    if slowest and not counts then redis.call('HDEL', state, 'robots_rate', 'robots_of', 'robots_at') end
    return
  end
  if counts and slowest <= wanted then return end
  redis.call('HSET', state, 'robots_rate', rate, 'robots_of', origin, 'robots_at', now,
    'tat', string.format('%.3f', math.max(tonumber(known[4] or 0) or 0, now + 1000 / wanted)))
  redis.call('EXPIRE', state, STATE_S)
  redis.call('HSETNX', limits, lane, '{}')
  local changed = redis.pcall('HINCRBY', limits, 'version', 1)
  if type(changed) == 'table' then redis.call('HSET', limits, 'version', now) end -- a foreign value
end

local failures = keep()
if lane ~= '' and kind ~= 'unreachable' then feed_lane() end
for place, one in ipairs(redis.call('ZRANGE', index, 0, MOST_FORGOTTEN - 1, 'WITHSCORES')) do
  local beyond = redis.call('ZCARD', index) > most or (tonumber(redis.call('GET', bytes) or 0) or 0) > most_bytes
  if place % 2 == 1 and one ~= origin and (beyond or (redis.call('ZSCORE', index, one) + 0) < now - OLD_MS) then forget(one) end
end
return { math.floor(keep_ms), failures }
