-- Take a crawler slot that nobody holds, with a fencing token higher than every one before it.
--
-- KEYS[1] slot    (string)  '<token>|<owner>' of the holder
-- KEYS[2] fences  (hash)    highest token handed out for each slot
-- KEYS[3] orders  (hash)    orders for the holders of slots
-- ARGV[1] name    (text)    '<spider>/<number>', the slot's field in the hashes
-- ARGV[2] owner   (text)    who asks; unique for each attempt, never used twice
-- ARGV[3] ttl_ms  (ms)      the slot is free again when it was not renewed for so long
-- Returns: {'acquired', token} or {'held', owner who holds it}
-- Retry: safe; the owner that got the slot is told the same token again
local slot, fences, orders = KEYS[1], KEYS[2], KEYS[3]
local name, owner, ttl_ms = ARGV[1], ARGV[2], ARGV[3]

-- include: clock

local held = redis.call('GET', slot)
if held then
  local token, holder = string.match(held, '^(%d+)|(.*)$')
  if holder ~= owner then return { 'held', holder or held } end
  redis.call('PEXPIRE', slot, ttl_ms)
  return { 'acquired', token }
end
-- Time as the base: tokens go on rising when Redis comes back without its data. Steps of two: token + 1 marks its release.
local last = tonumber(redis.call('HGET', fences, name) or '0')
local token = string.format('%.0f', math.max(last + 2, now_ms()))
redis.call('HDEL', orders, name) -- first: it is allowed also while Redis is out of memory, and after it the rest is
redis.call('HSET', fences, name, token)
redis.call('SET', slot, token .. '|' .. owner, 'PX', ttl_ms)
return { 'acquired', token }
