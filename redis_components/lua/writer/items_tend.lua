-- Look after an item stream with consumer groups, when no crawler does: make its groups, and remove the entries that all groups have acknowledged.
-- A list that was there before the crawl named groups becomes the stream, up to 500 items in each call.
--
-- KEYS[1] item_stream (list, stream)  item stream
-- KEYS[2] items_moving (list)  items of the former list that are not in the stream yet
-- ARGV[1] groups  (any number)  groups that the crawl names; a missing one is made, and gets all that is in the stream
-- Returns: items that are still to be moved
-- Retry: safe; what was done is not done again
local item_stream, items_moving = KEYS[1], KEYS[2]
local groups = 1

-- include: item_count
-- include: item_stream

local named = {}
for at = groups, #ARGV do named[#named + 1] = ARGV[at] end
redis.call(item_command(item_stream), item_stream) redis.call('LLEN', items_moving) -- a foreign type is found before anything is written
tend_stream(item_stream, items_moving, named)
return #named > 0 and redis.call('LLEN', items_moving) + (item_command(item_stream) == 'LLEN' and redis.call('LLEN', item_stream) or 0) or 0
