-- Let an owner count as dead at once: its supervisor saw the process end, so the heartbeat need not run out first.
-- A process that was fenced goes on under a new name, its first one with `~` and a number: those end too.
-- Works while Redis is out of memory: the leases that come back are what makes room.
--
-- KEYS[1] owners  (zset)  owners, score = time at which each counts as dead, in ms
-- KEYS[2] numbers (hash)  owner -> what is known of it (see exchange.lua), to which `why` is added as the last part
-- KEYS[3] own_stats (hash)  stats of the process under its first name; those under its later names begin with this key
-- ARGV[1] owner   (text)  the process that ended, by its first name
-- ARGV[2] why     (text)  what it died over, for people; '' where that is not known
-- Returns: 1 it was known, 0 it was not
-- Retry: safe; setting the same score again changes nothing
local owners, numbers, own_stats = KEYS[1], KEYS[2], KEYS[3]
local owner, why = ARGV[1], ARGV[2]
local MOST_OWNERS = 1000

-- include: clock
-- include: memory

local known = {}
if redis.call('ZSCORE', owners, owner) then known[1] = owner end
for _, name in ipairs(redis.call('ZRANGE', owners, 0, MOST_OWNERS - 1)) do
  if string.sub(name, 1, #owner + 1) == owner .. '~' and string.find(name, '^%d+$', #owner + 2) then known[#known + 1] = name end
end
if #known == 0 then return 0 end
let_writes_through(owners)
for _, name in ipairs(known) do
  redis.call('ZADD', owners, now_ms(), name) -- what it was to send after this time it did not send
  redis.call('DEL', own_stats .. string.sub(name, #owner + 1))
  local last, duplicates, overtaken, concurrency = string.match(redis.call('HGET', numbers, name) or '', '^([^|]*)|([^|]*)|([^|]*)|(%d*)')
  if last and why ~= '' then
    redis.call('HSET', numbers, name, table.concat({ last, duplicates, overtaken, concurrency, why }, '|'))
  end
end
return 1
