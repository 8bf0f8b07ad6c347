-- A lease is a field of the owner's hash: id -> kind score '|' member.
--   kind 'r'            a request; member = 8 bytes of order, 1 byte of attempts, payload
--   kind 'l', 's', 'z'  a start task from a list, set or zset; member = the task as its producer wrote it
-- (and 'f' among the dead: a foreign member of the queue)
local REQUEST = 'r'

local function lease_value(kind, score, member)
  return kind .. score .. '|' .. member
end

local function lease_parts(value)
  local bar = string.find(value, '|', 1, true)
  return string.sub(value, 1, 1), string.sub(value, 2, bar - 1), string.sub(value, bar + 1)
end

local function attempts_of(member)
  return string.byte(member, 9)
end

local function with_attempts(member, attempts)
  return string.sub(member, 1, 8) .. string.char(math.min(attempts, 255)) .. string.sub(member, 10)
end

-- The counter that a lease of this kind is counted in.
local function lease_counter(kind)
  return kind == REQUEST and 'leased' or 'leased_tasks'
end

-- Put what was leased back where it came from; its order number (or the list's head) gives it its old place.
local function put_back(ready, start_tasks, kind, score, member)
  if kind == REQUEST then
    redis.call('ZADD', ready, score, member)
    return
  end
  local held = redis.call('TYPE', start_tasks)['ok']
  if held == 'zset' or (held == 'none' and kind == 'z') then
    redis.call('ZADD', start_tasks, kind == 'z' and score or 0, member)
  elseif held == 'set' or (held == 'none' and kind == 's') then
    redis.call('SADD', start_tasks, member)
  else
    redis.call('LPUSH', start_tasks, member)
  end
end

-- DEAD: kept with its reason until somebody replays or purges it.
local function bury(dead, now, reason, kind, score, member)
  local payload = kind == REQUEST and string.sub(member, 10) or member
  redis.call('RPUSH', dead, cjson.encode({ at_ms = now, kind = kind, reason = reason, score = score }) .. '\n' .. payload)
end

-- When a lease was made: ids are `<exchange>.<n>`, and leases are started in that order.
local function made_before(a, b)
  local a_exchange, a_place = string.match(a[1], '(%d+)%.(%d+)')
  local b_exchange, b_place = string.match(b[1], '(%d+)%.(%d+)')
  if a_exchange ~= b_exchange then return tonumber(a_exchange) < tonumber(b_exchange) end
  return tonumber(a_place) < tonumber(b_place)
end

-- Give back every lease of one owner. Where it died, that counts as an attempt for what it was working on, which are its `started` oldest
-- leases; a request whose attempts are spent goes to DEAD. Bounded by what one process may hold.
local function give_back_all(leases, ready, start_tasks, dead, counters, now, started, max_attempts)
  local flat, held = redis.call('HGETALL', leases), {}
  for i = 1, #flat, 2 do held[#held + 1] = { flat[i], flat[i + 1] } end
  table.sort(held, made_before)
  local moved = { leased = 0, leased_tasks = 0 }
  for _, lease in ipairs(held) do
    local kind, score, member = lease_parts(lease[2])
    local counter = lease_counter(kind)
    moved[counter] = moved[counter] + 1
    if kind == REQUEST and moved[counter] <= started then member = with_attempts(member, attempts_of(member) + 1) end
    if kind == REQUEST and attempts_of(member) >= max_attempts then
      bury(dead, now, 'attempts spent: its crawler died ' .. attempts_of(member) .. ' times', kind, score, member)
    else
      put_back(ready, start_tasks, kind, score, member)
    end
  end
  redis.call('DEL', leases)
  for counter, n in pairs(moved) do
    if n > 0 then redis.call('HINCRBY', counters, counter, -n) end
  end
  return moved.leased + moved.leased_tasks
end
