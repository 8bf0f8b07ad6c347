-- Keep an owner alive while its process is busy and has nothing to exchange; also while Redis is out of memory.
--
-- KEYS[1] owners  (zset)  owners, score = time at which each counts as dead, in ms
-- ARGV[1] owner   (text)  the process
-- ARGV[2] ttl_ms  (ms)    how long it counts as alive from now
-- Returns: 1 alive, 0 not known (never met, or taken for dead: the next exchange reports it)
-- Retry: safe; setting the same score again changes nothing
local owners = KEYS[1]
local owner, ttl_ms = ARGV[1], tonumber(ARGV[2])

-- include: clock
-- include: memory

if not redis.call('ZSCORE', owners, owner) then return 0 end
let_writes_through(owners)
redis.call('ZADD', owners, now_ms() + ttl_ms, owner)
return 1
