-- Count requests sent to a site, once for each scan or check that reports them; delete slots older than the window.
--
-- KEYS[1] spent    (hash)  '<purpose>|<start of its slot, s>' -> requests
-- KEYS[2] counted  (zset)  scans and checks that are counted, by the time of their end in s
-- ARGV[1] slot_s   (s)     length of a slot
-- ARGV[2] keep_s   (s)     retention of both
-- ARGV[3] entries  (any number)  for each its name, its purpose, its end in s, its requests
-- Returns: number of new entries
-- Retry: safe; a counted entry is not counted again
local spent, counted = KEYS[1], KEYS[2]
local slot_s, keep_s = tonumber(ARGV[1]), tonumber(ARGV[2])
local entries = 3

-- include: clock

local now = now_ms() / 1000
redis.call('HLEN', spent) redis.call('ZCARD', counted) -- a foreign type is found before anything is written
local new = 0
for at = entries, #ARGV, 4 do
  local name, purpose, ended, requests = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  -- The end may be by another machine's clock: a future time counts as now, an old one is ignored.
  if ended > now then ended = now end
  if ended > now - keep_s and redis.call('ZADD', counted, 'NX', ended, name) == 1 then
    redis.call('HINCRBY', spent, purpose .. '|' .. string.format('%d', math.floor(ended / slot_s) * slot_s), requests)
    new = new + 1
  end
end
redis.call('ZREMRANGEBYSCORE', counted, '-inf', now - keep_s)
for _, field in ipairs(redis.call('HKEYS', spent)) do
  local slot = tonumber(string.match(field, '|(%d+)$') or nil)
  if not slot or slot < now - keep_s - slot_s then redis.call('HDEL', spent, field) end
end
redis.call('EXPIRE', spent, 2 * keep_s)
redis.call('EXPIRE', counted, 2 * keep_s)
return new
