-- Change what an operator holds in one crawl: set fields, or remove them. Crawlers learn of it with their next exchange.
--
-- KEYS[1] holds    (hash)  what is held, and its version
-- ARGV[1] changes  (any number)  for each change its field and its value; '' removes the field
-- Returns: how many fields are not what they were
-- Retry: safe; what is set already is not changed again
local holds = KEYS[1]
local changes = 1

-- A foreign type is found here, before anything is written. While Redis is out of memory, when an operator may want to hold something most, it refuses a
-- script whose first write needs memory; this one does not, and changes nothing.
redis.call('HDEL', holds, '')
local changed = 0
for at = changes, #ARGV, 2 do
  local field, value = ARGV[at], ARGV[at + 1]
  if value == '' then
    changed = changed + redis.call('HDEL', holds, field)
  elseif redis.call('HGET', holds, field) ~= value then
    redis.call('HSET', holds, field, value)
    changed = changed + 1
  end
end
if changed > 0 then
  local t = redis.call('TIME')
  local version = t[1] .. string.format('%06d', t[2])
  local last = redis.call('HGET', holds, 'version')
  redis.call('HSET', holds, 'version', version == last and version .. '+' or version)
end
return changed
