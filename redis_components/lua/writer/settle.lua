-- Settle one batch of the item stream after its commit: remove it, keep its refused items with their reasons, end the pending marks of its finished scans.
-- Works while Redis is out of memory: LTRIM is always allowed, and after a first write so is the rest. What is refused moves from one list to the other, so
-- the memory that both take grows by the reasons only.
--
-- KEYS[1] items    (list)    item stream, oldest first
-- KEYS[2] writer   (string)  '<token>|<number of the last settled batch>' of the holder
-- KEYS[3] bad      (list)    refused items, newest last
-- KEYS[4] pending  (hash)    seeded start tasks whose scan has not ended
-- KEYS[5] part     (string)  the part that the consumer was about to write; it ends with the batch
-- ARGV[1] token    (text)    the writer that read the batch
-- ARGV[2] number   (number)  of this batch: one more than that of the last settled one
-- ARGV[3] count    (number)  items in the batch, at the head of the stream
-- ARGV[4] done     (msgpack array of text)  task ids whose pending mark ends
-- ARGV[5] ttl_ms   (ms)      the lock is kept for this time from now
-- ARGV[6] refused  (any number)  for each refused item its place in the batch, from 0, and the reason as JSON text
-- Returns: 'settled', or 'lock_lost' (nothing changed: the batch may be another writer's by now)
-- Retry: safe; a batch with the number of the last settled one is not settled again
local items, writer, bad, pending, part = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, number, count, done, ttl_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4]), ARGV[5]
local refused = 6

-- include: clock

local holder, settled = string.match(redis.call('GET', writer) or '', '^(.*)|(%d+)$')
if holder ~= token then return 'lock_lost' end
if tonumber(settled) == number then return 'settled' end
if tonumber(settled) ~= number - 1 then return 'lock_lost' end
-- Reading each key once finds a foreign type before anything is written.
redis.call('LLEN', items) redis.call('LLEN', bad) redis.call('HLEN', pending)
local batch = #ARGV >= refused and count > 0 and redis.call('LRANGE', items, 0, count - 1) or {}

redis.call('LTRIM', items, count, -1)
redis.call('DEL', part)
redis.call('SET', writer, token .. '|' .. number, 'PX', ttl_ms)
local stamp = string.format('{"at":%.3f,"reason":', now_ms() / 1000)
for at = refused, #ARGV, 2 do
  local item = batch[tonumber(ARGV[at]) + 1]
  if item then redis.call('RPUSH', bad, stamp .. ARGV[at + 1] .. '}\n' .. item) end
end
for _, task in ipairs(done) do redis.call('HDEL', pending, task) end
return 'settled'
