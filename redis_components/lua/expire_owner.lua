-- Let an owner count as dead at once: its supervisor saw the process end, nobody has to wait for the heartbeat to run out.
-- A process that was fenced goes on under a new name, its first one with `~` and a number: those end too.
-- Works while Redis is out of memory: the leases that come back are what makes room.
--
-- KEYS[1] owners  (zset)  owners, score = time at which each counts as dead, in ms
-- ARGV[1] owner   (text)  the process that ended, by its first name
-- Returns: 1 it was known, 0 it was not
-- Retry: safe; setting the same score again changes nothing
local owners = KEYS[1]
local owner = ARGV[1]
local MOST_OWNERS = 1000

-- include: memory

local known = {}
if redis.call('ZSCORE', owners, owner) then known[1] = owner end
for _, name in ipairs(redis.call('ZRANGE', owners, 0, MOST_OWNERS - 1)) do
  if string.sub(name, 1, #owner + 1) == owner .. '~' and string.find(name, '^%d+$', #owner + 2) then known[#known + 1] = name end
end
if #known == 0 then return 0 end
let_writes_through(owners)
for _, name in ipairs(known) do redis.call('ZADD', owners, 0, name) end
return 1
