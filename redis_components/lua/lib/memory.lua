-- Redis out of memory (maxmemory reached, nothing it may evict) refuses writes that need memory, but only as the first write of a script.

-- True while Redis is out of memory. `free_key` names a string, or nothing: writing no byte at its start changes neither.
local function out_of_memory(free_key)
  local refused = redis.pcall('SETRANGE', free_key, 0, '')
  return type(refused) == 'table' and refused.err ~= nil and string.find(refused.err, 'OOM', 1, true) ~= nil
end

-- After this first write, which is always allowed and changes nothing, the script may write anything.
local function let_writes_through(zset)
  redis.call('ZREM', zset, '')
end
