-- Name a node that shall take no crawlers. Names without a heartbeat for a week are forgotten, so that the hash stays small.
--
-- KEYS[1] drained  (hash)  nodes that take no crawlers: name -> epoch s of their last heartbeat
-- ARGV[1] name     (text)  the node's
-- Returns: 'drained'
-- Retry: safe; the same call again changes no more than the time
local drained = KEYS[1]
local name = ARGV[1]

-- include: clock

local now_s = now_ms() / 1000
local known = redis.call('HGETALL', drained) -- nodes that an operator has named: a handful
for i = 1, #known, 2 do
  if now_s - (tonumber(known[i + 1]) or 0) > 604800 then redis.call('HDEL', drained, known[i]) end
end
redis.call('HSET', drained, name, string.format('%.0f', now_s))
return 'drained'
