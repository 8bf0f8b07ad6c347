-- What lanes have to obey at the moment, in addition to their limits.
--
-- KEYS[1] states  (any number)  state of each lane (hash)
-- ARGV[1] fields  (any number)  of the states
-- Returns: for each lane the values of these fields, nil for what it does not have
-- Retry: safe; it only reads
local states, fields = 1, 1

local told = {}
for place = states, #KEYS do
  told[#told + 1] = redis.call('HMGET', KEYS[place], unpack(ARGV, fields))
end
return told
