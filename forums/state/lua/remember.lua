-- Store records of threads, and delete the change tokens of their start tasks, if those are still the last ones.
-- Above the bound the oldest of a few random records is evicted for each new one, as Redis does with keys under maxmemory-policy allkeys-lru.
-- Works while Redis is out of memory, because the first write frees memory, after which Redis accepts the others.
--
-- KEYS[1] threads  (hash)  thread id -> msgpack array, whose sixth element is the hour of the reading
-- KEYS[2] start_tokens (hash)  task id -> last change token of its start task
-- ARGV[1] most     (count) records kept at most
-- ARGV[2] entries  (any number)  for each thread its id, its change token, its record
-- Returns: number of records removed
-- Retry: safe; the same records are written again
local threads, start_tokens = KEYS[1], KEYS[2]
local most, entries = tonumber(ARGV[1]), 2
local SAMPLE = 5

redis.call('HLEN', threads) -- a foreign type is found before anything is written
redis.call('HDEL', start_tokens, '')
for at = entries, #ARGV, 3 do
  local id, token = ARGV[at], ARGV[at + 1]
  if redis.call('HGET', start_tokens, id) == token then redis.call('HDEL', start_tokens, id) end
  redis.call('HSET', threads, id, ARGV[at + 2])
end

local function oldest()
  local fields, found, found_hour = redis.call('HRANDFIELD', threads, SAMPLE, 'WITHVALUES'), nil, math.huge
  for at = 1, #fields, 2 do
    local is_record, record = pcall(cmsgpack.unpack, fields[at + 1])
    local hour = is_record and type(record) == 'table' and tonumber(record[6]) or 0 -- unreadable ones count as the oldest
    if hour < found_hour then found, found_hour = fields[at], hour end
  end
  return found
end

local removed, left = 0, redis.call('HLEN', threads) - most
while removed < left and removed < #ARGV do -- a lowered bound is reached in several calls
  redis.call('HDEL', threads, oldest())
  removed = removed + 1
end
return removed
