-- Settle one batch of a consumer group after its commit: acknowledge it, keep its refused items with their reasons, remove what all groups have acknowledged.
-- Works while Redis is out of memory: XACK is always allowed, and after a first write so is the rest.
--
-- KEYS[1] items    (stream)  item stream
-- KEYS[2] writer   (string)  '<token>|<number of the last settled batch>' of the holder
-- KEYS[3] bad      (list)    refused items, newest last
-- KEYS[4] moving   (list)    items of a former list that are not in the stream yet
-- KEYS[5] part     (string)  the part that the consumer was about to write; it ends with the batch
-- ARGV[1] token    (text)    the consumer that read the batch
-- ARGV[2] number   (number)  of this batch: one more than that of the last settled one
-- ARGV[3] group    (text)    the consumer group
-- ARGV[4] ids      (msgpack array of text)  entries of the batch
-- ARGV[5] ttl_ms   (ms)      the lock is kept for this time from now
-- ARGV[6] refused  (any number)  for each refused item its place in the batch, from 0, and the reason as JSON text
-- Returns: 'settled', or 'lock_lost' (nothing changed: the batch may be another consumer's by now)
-- Retry: safe; a batch with the number of the last settled one is not settled again
local items, writer, bad, moving, part = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, number, group, ids, ttl_ms = ARGV[1], tonumber(ARGV[2]), ARGV[3], cmsgpack.unpack(ARGV[4]), ARGV[5]
local refused = 6

-- include: clock
-- include: item_count
-- include: item_stream

local holder, settled = string.match(redis.call('GET', writer) or '', '^(.*)|(%d+)$')
if holder ~= token then return 'lock_lost' end
if tonumber(settled) == number then return 'settled' end
if tonumber(settled) ~= number - 1 then return 'lock_lost' end
-- Reading each key once finds a foreign type before anything is written.
redis.call('XLEN', items) redis.call('LLEN', bad) redis.call('LLEN', moving)
local kept = {}
for at = refused, #ARGV, 2 do
  local entry = redis.call('XRANGE', items, ids[tonumber(ARGV[at]) + 1], '+', 'COUNT', 1)[1]
  if entry and entry[1] == ids[tonumber(ARGV[at]) + 1] then kept[#kept + 1] = { ARGV[at + 1], entry[2][2] } end
end

for from = 1, #ids, 1000 do redis.call('XACK', items, group, unpack(ids, from, math.min(from + 999, #ids))) end
redis.call('DEL', part)
redis.call('SET', writer, token .. '|' .. number, 'PX', ttl_ms)
local stamp = string.format('{"at":%.3f,"reason":', now_ms() / 1000)
for _, one in ipairs(kept) do redis.call('RPUSH', bad, stamp .. one[1] .. '}\n' .. one[2]) end
tend_stream(items, moving, {})
return 'settled'
