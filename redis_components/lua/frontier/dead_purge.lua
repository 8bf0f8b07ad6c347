-- Forget DEAD requests and start tasks for good. Works while Redis is out of memory.
--
-- KEYS[1] dead    (list)  DEAD requests and start tasks with their reasons
-- ARGV[1] chosen  (any number)  for each entry its place from the head, its SHA-1; at most 500, by rising place
-- Returns: how many were there; entries that are not at their place any more are left out
-- Retry: safe; what was taken is not at its place any more
local dead = KEYS[1]
local chosen = 1

-- include: dead

redis.call('LREM', dead, 1, TAKEN) -- a first write that is always allowed, and after it the rest is
local count = 0
for at = chosen, #ARGV, 2 do
  local place, sha = ARGV[at], ARGV[at + 1]
  if entry_at(dead, place, sha) then
    mark_taken(dead, place)
    count = count + 1
  end
end
sweep(dead, count, ARGV[chosen])
return count
