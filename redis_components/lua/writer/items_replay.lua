-- Append items that were refused to the item stream again, and take them out of the list of refused ones.
--
-- KEYS[1] bad_items (list)  refused items with their reasons
-- KEYS[2] item_stream (list)  item stream, oldest first
-- ARGV[1] chosen  (any number)  for each entry its place from the head, its SHA-1; at most 500, by rising place
-- Returns: how many were put back; entries that are not at their place any more are left out
-- Retry: safe; what was taken is not at its place any more
local bad_items, item_stream = KEYS[1], KEYS[2]
local chosen = 1

-- include: dead

redis.call('LLEN', item_stream) -- a foreign type is found before anything is written
local count = 0
for at = chosen, #ARGV, 2 do
  local place, sha = ARGV[at], ARGV[at + 1]
  local entry = entry_at(bad_items, place, sha)
  if entry then
    redis.call('RPUSH', item_stream, payload_of_dead(entry))
    mark_taken(bad_items, place)
    count = count + 1
  end
end
sweep(bad_items, count, ARGV[chosen])
return count
