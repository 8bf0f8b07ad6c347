-- A site asked to be left alone, by its answer to a request that is none of the frontier's: no crawler leases a request of its lane meanwhile.
--
-- KEYS[1] limits  (hash)  limits of lanes (lib/lanes), and their version; the lane's own keys begin with this one
-- ARGV[1] lane    (text)  name of the lane
-- ARGV[2] ms      (ms)    for how long; 0: not given
-- Returns: 1
-- Retry: safe; two reports of one moment count once
local limits = KEYS[1]
local lane, ms = ARGV[1], tonumber(ARGV[2])

-- include: clock
-- include: many
-- include: score
-- include: lanes
-- include: ready_requests
-- include: quiet
-- include: sending
-- include: pacing

redis.call('HLEN', limits) -- a foreign type is found before anything is written
keep_off(limits, lane, ms, now_ms())
return 1
