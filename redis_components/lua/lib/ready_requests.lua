-- READY requests of one lane: a zset whose members are 8 bytes of order, 1 byte of attempts, payload. The order comes from a number (lib/order_numbers).

-- Place among requests of equal score, from the order number of the request; queue.py has the same. In the order `random` from what it has: equal requests are one.
local function rank_of(order, number, payload)
  if order == 'lifo' then return 2 ^ 52 - number end
  if order == 'random' then return tonumber(string.sub(redis.sha1hex(payload), 1, 12), 16) end
  return number
end

local function new_member(order, number, payload)
  return struct.pack('>I8', rank_of(order, number, payload)) .. '\0' .. payload
end

-- a: store one request. Where a queue class of the user's chooses the next one, the payload begins with an order that its owner chose and knows it by.
local function enqueue(ready, order, number, score, payload)
  if order == 'advised' then
    redis.call('ZADD', ready, 0, string.sub(payload, 1, 8) .. '\0' .. string.sub(payload, 9))
    return
  end
  redis.call('ZADD', ready, order == 'priority' and score or 0, new_member(order, number, payload))
end

local function order_of(member)
  return string.sub(member, 1, 8)
end

local function attempts_of(member)
  return string.byte(member, 9)
end

local function payload_of(member)
  return string.sub(member, 10)
end

local function with_attempts(member, attempts)
  return order_of(member) .. string.char(math.min(attempts, 255)) .. payload_of(member)
end

-- The request with the order that `hex` writes, where all scores are equal; nothing when it is not READY any more.
local function member_of(ready, hex)
  local order = string.gsub(hex, '%x%x', function(pair) return string.char(tonumber(pair, 16)) end)
  local member = redis.call('ZRANGEBYLEX', ready, '[' .. order, '+', 'LIMIT', 0, 1)[1]
  return member and order_of(member) == order and member or nil
end
