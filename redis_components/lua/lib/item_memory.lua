-- The memory of two keys, by estimate from a few entries of each: asking takes the same time for any contents. 0 where the user must not ask.
local function bytes_of(one, two)
  local bytes = 0
  for _, key in ipairs({ one, two }) do
    local used = redis.pcall('MEMORY', 'USAGE', key) -- false where there is no such key
    if type(used) == 'number' then bytes = bytes + used end
  end
  return bytes
end
