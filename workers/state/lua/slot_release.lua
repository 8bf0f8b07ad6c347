-- Give a slot back and leave a last word about its crawler.
--
-- KEYS[1] slot      (string)  '<token>|<owner>' of the holder
-- KEYS[2] fences    (hash)    highest token handed out for each slot
-- KEYS[3] orders    (hash)    orders for the holders of slots
-- KEYS[4] crawlers  (hash)    last record of each crawler
-- ARGV[1] name      (text)    '<spider>/<number>', the slot's field in the hashes
-- ARGV[2] token     (number)  what slot_acquire returned
-- ARGV[3] record    (JSON object, or empty)  the crawler's last record, stamped here with the time
-- Returns: 'released', or 'lost' when another owner has the slot by now (nothing is changed then)
-- Retry: safe; a slot that is free already counts as released
local slot, fences, orders, crawlers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, token, record = ARGV[1], ARGV[2], ARGV[3]

-- include: clock
-- include: fence
-- include: put_record

local holder = string.match(redis.call('GET', slot) or '', '^(%d+)|') -- another form is foreign
if holder and holder ~= token and redis.call('PTTL', slot) ~= -1 then return 'lost' end
if fence_of(redis.call('HGET', fences, name)) > tonumber(token) + 1 then return 'lost' end
redis.call('DEL', slot) -- first: it is allowed also while Redis is out of memory, and after it the rest is
-- Token + 1 marks the release: a renewal that was still under way must not take the slot back.
redis.call('HSET', fences, name, string.format('%.0f', tonumber(token) + 1))
redis.call('HDEL', orders, name)
if record ~= '' then put_record(crawlers, name, record) end
return 'released'
