-- One command for many arguments, a thousand at a time: each call from here costs as much as what it does.
local function call_with_many(command, key, arguments)
  local sum = 0
  for from = 1, #arguments, 1000 do
    sum = sum + redis.call(command, key, unpack(arguments, from, math.min(from + 999, #arguments)))
  end
  return sum
end
