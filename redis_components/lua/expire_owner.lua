-- Let an owner count as dead at once: its supervisor saw the process end, nobody has to wait for the heartbeat to run out.
--
-- KEYS[1] owners  (zset)  owners, score = time at which each counts as dead, in ms
-- ARGV[1] owner   (text)  the process that ended
-- Returns: 1 it was known, 0 it was not
-- Retry: safe; setting the same score again changes nothing
local owners = KEYS[1]
local owner = ARGV[1]

if not redis.call('ZSCORE', owners, owner) then return 0 end
redis.call('ZADD', owners, 0, owner)
return 1
