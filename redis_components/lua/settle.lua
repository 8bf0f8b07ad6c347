-- Settle one batch of the item stream after its commit: remove it, set its bad items aside, end the pending marks of its finished scans.
-- Works while Redis is out of memory: LTRIM is always allowed, and after a first write so is the rest.
--
-- KEYS[1] items    (list)    item stream, oldest first
-- KEYS[2] writer   (string)  '<token>|<number of the last settled batch>' of the holder
-- KEYS[3] bad      (list)    items that the database refused, newest first
-- KEYS[4] pending  (hash)    seeded start tasks whose scan has not ended
-- ARGV[1] token    (text)    the writer that read the batch
-- ARGV[2] number   (number)  of this batch: one more than that of the last settled one
-- ARGV[3] count    (number)  items in the batch, at the head of the stream
-- ARGV[4] refused  (msgpack array of JSON objects)  bad items, oldest first; stamped here with the time
-- ARGV[5] done     (msgpack array of text)          task ids whose pending mark ends
-- ARGV[6] keep     (number)  bad items kept at most
-- ARGV[7] ttl_ms   (ms)      the lock is kept for so long from now
-- Returns: 'settled', or 'lock_lost' (nothing changed: the batch may be another writer's by now)
-- Retry: safe; a batch with the number of the last settled one is not settled again
local items, writer, bad, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, number, count, refused, done = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4]), cmsgpack.unpack(ARGV[5])
local keep, ttl_ms = tonumber(ARGV[6]), ARGV[7]

-- include: clock

local holder, settled = string.match(redis.call('GET', writer) or '', '^(.*)|(%d+)$')
if holder ~= token then return 'lock_lost' end
if tonumber(settled) == number then return 'settled' end
if tonumber(settled) ~= number - 1 then return 'lock_lost' end
-- Reading each key once finds a foreign type before anything is written.
redis.call('LLEN', items) redis.call('LLEN', bad) redis.call('HLEN', pending)

redis.call('LTRIM', items, count, -1)
redis.call('SET', writer, token .. '|' .. number, 'PX', ttl_ms)
if #refused > 0 then
  local stamp = string.format('{"at":%.3f,', now_ms() / 1000)
  for _, entry in ipairs(refused) do redis.call('LPUSH', bad, stamp .. string.sub(entry, 2)) end
  redis.call('LTRIM', bad, 0, keep - 1)
end
for _, task in ipairs(done) do redis.call('HDEL', pending, task) end
return 'settled'
