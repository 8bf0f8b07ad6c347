-- Append items that were refused to the item stream again, and take them out of the list of refused ones.
--
-- KEYS[1] bad_items (list)  refused items with their reasons
-- KEYS[2] item_stream (list, stream)  item stream, oldest first
-- ARGV[1] groups  (msgpack array of text)  consumer groups that the crawl names; none: the item stream is a list
-- ARGV[2] chosen  (any number)  for each entry its place from the head, its SHA-1; at most 500, by rising place
-- Returns: how many were put back; entries that are not at their place any more are left out
-- Retry: safe; what was taken is not at its place any more
local bad_items, item_stream = KEYS[1], KEYS[2]
local groups = cmsgpack.unpack(ARGV[1])
local chosen = 2

-- include: dead
-- include: item_count
-- include: item_stream

redis.call(item_command(item_stream), item_stream) -- a foreign type is found before anything is written
local count, add = 0, item_adder(item_stream, groups)
for at = chosen, #ARGV, 2 do
  local place, sha = ARGV[at], ARGV[at + 1]
  local entry = entry_at(bad_items, place, sha)
  if entry then
    add(item_stream, payload_of_dead(entry))
    mark_taken(bad_items, place)
    count = count + 1
  end
end
sweep(bad_items, count, ARGV[chosen])
return count
