-- Store the validators of pages, once these are settled; of two generations the older one goes when the newer one is full.
--
-- KEYS[1] newer    (hash)  name of a page -> its validators
-- KEYS[2] older    (hash)  the same, of pages that were not asked for since
-- ARGV[1] most     (number)  pages that are remembered in all
-- ARGV[2] entries  (any number)  name, validators, ...
-- Returns: how many pages the newer generation has
-- Retry: safe; the same entries again change nothing
local newer, older = KEYS[1], KEYS[2]
local most = tonumber(ARGV[1])
local entries, KEEP_S = 2, 2592000

redis.call('HLEN', newer) redis.call('HLEN', older) -- a foreign type is found before anything is written
for at = entries, #ARGV, 2 do
  redis.call('HDEL', older, ARGV[at])
  redis.call('HSET', newer, ARGV[at], ARGV[at + 1])
  if redis.call('HLEN', newer) * 2 >= most then redis.call('RENAME', newer, older) end
end
redis.call('EXPIRE', newer, KEEP_S)
redis.call('EXPIRE', older, KEEP_S)
return redis.call('HLEN', newer)
