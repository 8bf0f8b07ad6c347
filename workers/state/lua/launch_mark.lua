-- Claim the right to send a launch of a slot to a node.
--
-- KEYS[1] launch  (string)  the node that a launch of this slot is on its way to
-- ARGV[1] node    (text)    where it shall be sent now
-- ARGV[2] not_on  (text)    the node of the last launch, if that node will not take it any more; else empty
-- ARGV[3] ttl_ms  (ms)      a launch that was not picked up for this time is sent again
-- Returns: 1 when the launch may be sent, else 0
-- Retry: unsafe; after a lost reply the answer is 0, and the launch is sent when its time is over
local launch = KEYS[1]
local node, not_on, ttl_ms = ARGV[1], ARGV[2], ARGV[3]

local on_its_way = redis.call('GET', launch)
-- A mark without an expiry is foreign: it would keep the slot empty for ever.
if on_its_way and on_its_way ~= not_on and redis.call('PTTL', launch) ~= -1 then return 0 end
redis.call('SET', launch, node, 'PX', ttl_ms)
return 1
