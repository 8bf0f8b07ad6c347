-- Everything is checked before anything is written: Redis does not roll a script back. Reading each key once finds a foreign type. Needs lib/tasks and
-- lib/filter_form.
local MEND = '; trawl migrate scrapy-redis imports it if it is of scrapy-redis, else remove it'
local NUMERIC = { 'order', 'leased', 'leased_tasks', 'acked', 'reclaimed', 'parked', 'parked_tasks' }

-- Of these {command, key} the first one whose key has another type; nothing where all are right.
local function foreign_key(checks)
  for _, check in ipairs(checks) do
    if type(redis.pcall(check[1], check[2])) ~= 'number' then return check[2] end
  end
end

local function foreign_type(key)
  return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. redis.call('TYPE', key)['ok'] .. ' that Trawl did not write' .. MEND)
end

-- Layout version, the field `custom_queue`, the last order number, and an error where a counter is foreign.
local function read_counters(counters)
  local counts = redis.call('HMGET', counters, 'layout', 'custom_queue', unpack(NUMERIC))
  for place, counter in ipairs(NUMERIC) do
    local count = counts[place + 2]
    if count and not string.find(count, '^-?%d+$') then
      return counts[1], counts[2], counts[3], redis.error_reply(
        'ERR ' .. counters .. " has the foreign value '" .. count .. "' for " .. counter .. '; remove it'
      )
    end
  end
  return counts[1], counts[2], counts[3]
end

-- Nothing of Trawl's was ever stored here: then nothing may wait in the queue, neither. An error where something does.
local function foreign_contents(ready, seen, plain_set)
  local first = redis.call('ZRANGE', ready, 0, 0)[1]
  if first and string.byte(first) ~= 0 then
    return redis.error_reply('ERR ' .. ready .. ' holds requests that Trawl did not store' .. MEND)
  end
  local known = plain_set and redis.call('SRANDMEMBER', seen)
  if known and string.find(known, '^[0-9a-f]+$') and #known == 40 then -- ours are bytes
    return redis.error_reply('ERR ' .. seen .. ' holds fingerprints that Trawl did not store' .. MEND)
  end
end
