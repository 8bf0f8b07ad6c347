-- Claim a database for the fleet, or note that a writer has another one than the fleet's.
--
-- KEYS[1] database  (hash)  `written`, the id of the claimed one, its `place` and `at`; `known`; `refused` and `refused_at`
-- ARGV[1] identity  (text)  of the writer's database; '': it has no tables yet, and claims nothing
-- ARGV[2] place     (text)  where that one is
-- Returns: {1, ''} where the writer may write; else {0, the place of the fleet's database}
-- Retry: safe; the same claim again changes no more than the time
local database = KEYS[1]
local identity, place = ARGV[1], ARGV[2]

-- include: clock

local now_s = string.format('%.3f', now_ms() / 1000)
local written = redis.call('HGET', database, 'written')
if written and written ~= identity then
  redis.call('HSET', database, 'refused', place, 'refused_at', now_s)
  return { 0, redis.call('HGET', database, 'place') or '' }
end
if identity ~= '' then
  redis.call('HSETNX', database, 'known', identity)
  redis.call('HSET', database, 'written', identity, 'place', place, 'at', now_s)
end
return { 1, '' }
