-- Lead the beats of this fleet, or return the leader: one of them sends, the others wait for its place.
-- A free lock (given back, run out, or gone with Redis's data) goes to the first caller, with a higher token than ever.
--
-- KEYS[1] leader  (string)  '<token>|<owner>' of the beat that sends
-- KEYS[2] fences  (hash)    highest token handed out, in the field 'beat'
-- KEYS[3] beats   (zset)    every beat process; score = time of its last word, ms
-- ARGV[1] owner   (text)    the caller; unique for each process
-- ARGV[2] ttl_ms  (ms)      the lock is free again when it was not renewed for this time
-- Returns: {'leads', token, owner, ttl_ms, now in ms} or {'follows', token and owner of the leader, ms until its lock runs out, now}
-- Retry: safe; the leader gets the same token again
local leader, fences, beats = KEYS[1], KEYS[2], KEYS[3]
local owner, ttl_ms = ARGV[1], ARGV[2]

-- include: clock
-- include: fence

local now, held = now_ms(), redis.call('GET', leader)
local token, holder = string.match(held or '', '^(%d+)|(.*)$')
if redis.call('PTTL', leader) == -1 then holder = nil end -- a lock without an expiry is foreign: no beat would ever lead again
-- First a removal: it is allowed also while Redis is out of memory, and after it the rest is.
redis.call('ZREMRANGEBYSCORE', beats, '-inf', now - 10 * ttl_ms)
redis.call('ZADD', beats, now, owner)
redis.call('PEXPIRE', beats, 10 * ttl_ms)
if holder and holder ~= owner then return { 'follows', token, holder, math.max(0, redis.call('PTTL', leader)), now } end
if not holder then
  -- Time as the base: tokens go on rising when Redis comes back without its data.
  local micros = now * 1000 + redis.call('TIME')[2] % 1000
  token = string.format('%.0f', math.max(fence_of(redis.call('HGET', fences, 'beat')) + 1, micros))
  redis.call('HSET', fences, 'beat', token)
end
redis.call('SET', leader, token .. '|' .. owner, 'PX', ttl_ms)
return { 'leads', token, owner, tonumber(ttl_ms), now }
