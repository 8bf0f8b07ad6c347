-- Store the validators of pages, once these are settled; of two generations the older one goes when the newer one is full.
--
-- KEYS[1] validators (hash)  name of a page -> its validators
-- KEYS[2] older_validators (hash)  the same, of pages that were not asked for since
-- ARGV[1] most     (number)  pages that are remembered in all
-- ARGV[2] entries  (any number)  name, validators, ...
-- Returns: how many pages the newer generation has
-- Retry: safe; the same entries again change nothing
local validators, older_validators = KEYS[1], KEYS[2]
local most = tonumber(ARGV[1])
local entries, KEEP_S = 2, 2592000

redis.call('HLEN', validators) redis.call('HLEN', older_validators) -- a foreign type is found before anything is written
for at = entries, #ARGV, 2 do
  redis.call('HDEL', older_validators, ARGV[at])
  redis.call('HSET', validators, ARGV[at], ARGV[at + 1])
  if redis.call('HLEN', validators) * 2 >= most then redis.call('RENAME', validators, older_validators) end
end
redis.call('EXPIRE', validators, KEEP_S)
redis.call('EXPIRE', older_validators, KEEP_S)
return redis.call('HLEN', validators)
