-- Take a free crawler slot, with a fencing token higher than every one before it.
-- A slot whose key vanished before its time (it was deleted) is held as long as its holder sent a heartbeat within the TTL: the
-- holder takes it back with its next renewal, and its crawler works until it gets another answer.
--
-- KEYS[1] slot    (string)  '<token>|<owner>' of the holder
-- KEYS[2] fences  (hash)    highest token handed out for each slot
-- KEYS[3] orders  (hash)    orders for the holders of slots
-- KEYS[4] crawlers  (hash)  last record of each crawler
-- ARGV[1] name    (text)    '<spider>/<number>', the slot's field in the hashes
-- ARGV[2] owner   (text)    the caller; unique for each attempt, never used twice
-- ARGV[3] ttl_ms  (ms)      the slot is free again when it was not renewed for this time
-- Returns: {'acquired', token} or {'held', owner that holds it}
-- Retry: safe; the owner that got the slot gets the same token again
local slot, fences, orders, crawlers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, owner, ttl_ms = ARGV[1], ARGV[2], ARGV[3]

-- include: clock
-- include: fence

local held_token, holder = string.match(redis.call('GET', slot) or '', '^(%d+)|(.*)$') -- another form is foreign
if holder and redis.call('PTTL', slot) ~= -1 then -- and what has no end
  if holder ~= owner then return { 'held', holder } end
  redis.call('PEXPIRE', slot, ttl_ms)
  return { 'acquired', held_token }
end
local fence = redis.call('HGET', fences, name) or '0'
local record = redis.call('HGET', crawlers, name) or ''
local heard_s, of = string.match(record, '^{"beat_at":([%d.]+),'), string.match(record, '"token":(%d+)[,}]')
if tonumber(heard_s) and of == fence and now_ms() - tonumber(heard_s) * 1000 < tonumber(ttl_ms) then
  return { 'held', 'the holder of token ' .. of }
end
-- Time as the base: tokens go on rising when Redis comes back without its data. Steps of two: token + 1 marks its release.
local token = string.format('%.0f', math.max(fence_of(fence) + 2, now_ms()))
redis.call('HDEL', orders, name) -- first: it is allowed also while Redis is out of memory, and after it the rest is
redis.call('HSET', fences, name, token)
redis.call('SET', slot, token .. '|' .. owner, 'PX', ttl_ms)
return { 'acquired', token }
