-- A node says that it lives, and hears whether it is being drained.
--
-- KEYS[1] nodes    (hash)  last record of each node
-- KEYS[2] drained  (hash)  nodes that take no crawlers: name -> epoch s at which they were last heard of
-- ARGV[1] name     (text)  the node's
-- ARGV[2] record   (JSON object)  stamped here with the time
-- Returns: 1 when it is being drained, else 0
-- Retry: safe; the same call again changes no more than the time
local nodes, drained = KEYS[1], KEYS[2]
local name, record = ARGV[1], ARGV[2]

-- include: clock
-- include: record

local draining = redis.call('HEXISTS', drained, name)
put_record(nodes, name, record)
if draining == 1 then redis.call('HSET', drained, name, string.format('%.0f', now_ms() / 1000)) end
return draining
