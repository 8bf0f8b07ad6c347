-- Store the heartbeat of a node, and return if it is being drained.
--
-- KEYS[1] nodes    (hash)  last record of each node
-- KEYS[2] drained  (hash)  nodes that take no crawlers: name -> epoch s of their last heartbeat
-- ARGV[1] name     (text)  the node's
-- ARGV[2] record   (JSON object)  stamped here with the time
-- ARGV[3] back_at  (epoch s)  when Redis, having lost its data, got a beat of this node again; 0: never; empty: this is its first beat
-- Returns: {1 when it is being drained, else 0; its back_at from now on; the time (epoch s); the instance whose record this replaces, or ''}
-- Retry: safe; the same call again changes no more than the time
local nodes, drained = KEYS[1], KEYS[2]
local name, record, back_at = ARGV[1], ARGV[2], ARGV[3]

-- include: clock
-- include: put_record

local now_s = string.format('%.3f', now_ms() / 1000)
local draining = redis.call('HEXISTS', drained, name)
if back_at == '' then
  back_at = '0'
elseif redis.call('HEXISTS', nodes, name) == 0 then
  back_at = now_s
end
local before = string.match(redis.call('HGET', nodes, name) or '', '"instance":"(%x+)"') or ''
put_record(nodes, name, '{"back_at":' .. back_at .. ',' .. string.sub(record, 2))
if draining == 1 then redis.call('HSET', drained, name, now_s) end
return { draining, back_at, now_s, before }
