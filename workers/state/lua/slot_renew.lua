-- Keep a slot, store its crawler's record, and return the command for it.
-- A slot that vanished (it ran out, or Redis lost its data) is taken back unless there is a newer token.
--
-- KEYS[1] slot      (string)  '<token>|<owner>' of the holder
-- KEYS[2] fences    (hash)    highest token handed out for each slot
-- KEYS[3] orders    (hash)    orders for the holders of slots: '<token>|<word>|<reason>'
-- KEYS[4] crawlers  (hash)    last record of each crawler
-- ARGV[1] name      (text)    '<spider>/<number>', the slot's field in the hashes
-- ARGV[2] token     (number)  what slot_acquire returned
-- ARGV[3] owner     (text)    the holder, kept for display when the slot is taken back
-- ARGV[4] ttl_ms    (ms)      the slot is free again when it was not renewed for this time
-- ARGV[5] record    (JSON object, or empty)  the crawler's record, stamped here with the time; empty leaves the last one
-- Returns: {'renewed', '<word>|<reason>' of the order for this token, or ''} or {'lost', ''}
-- Retry: safe; the same call again changes no more than the time
local slot, fences, orders, crawlers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, token, owner, ttl_ms, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include: clock
-- include: fence
-- include: put_record

local holder = string.match(redis.call('GET', slot) or '', '^(%d+)|') -- another form is foreign
if holder and (holder == token or redis.call('PTTL', slot) ~= -1) then -- and what has no end
  if holder ~= token then return { 'lost', '' } end
  redis.call('PEXPIRE', slot, ttl_ms)
else
  if fence_of(redis.call('HGET', fences, name)) > tonumber(token) then return { 'lost', '' } end
  redis.call('HSET', fences, name, token)
  redis.call('SET', slot, token .. '|' .. owner, 'PX', ttl_ms)
end
if record ~= '' then put_record(crawlers, name, record) end
local for_token, order = string.match(redis.call('HGET', orders, name) or '', '^(%d+)|(.*)$')
return { 'renewed', for_token == token and order or '' }
