-- Store one request unless it was seen before, for a Scheduler that is used without an engine: edge a, as in exchange.lua, and nothing else.
--
-- KEYS[1] ready        (zset)  READY requests: score = -priority, member = order, attempts, payload
-- KEYS[2] fingerprints (set, hash)  fingerprints of requests ever stored; where filter names another dupefilter than the plain set: it keeps its
--                      entries in keys that begin with this one and so are in its slot (lib/filter_state)
-- KEYS[3] counters     (hash)  layout version, order number
-- ARGV[1] order        (text)  in which order READY requests are leased
-- ARGV[2] filter       (msgpack map, nil)  kind and parameters of the dupefilter, see redis_components/filters.py; nil for the plain set
-- ARGV[3] fingerprint  (binary)  '' = no filter
-- ARGV[4] score        (number)  lower ones come first
-- ARGV[5] payload      (binary)  the request
-- Returns: {outcome, detail}: 'stored', 'seen', 'layout' (another layout version, in detail: nothing changed), or 'filter' (another dupefilter is at that
--          key: nothing changed; its form in detail)
-- Retry: unsafe; a second try finds the request seen, or stores it twice where no filter is asked
local ready, fingerprints, counters = KEYS[1], KEYS[2], KEYS[3]
local order, filter, fingerprint, score, payload = ARGV[1], cmsgpack.unpack(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local LAYOUT = '1'

-- include: clock
-- include: ready_requests
-- include: order_numbers
-- include: filter_form
-- include: filter_state
-- include: buckets
-- include: bloom
-- include: filter

local layout = redis.call('HGET', counters, 'layout') or LAYOUT
if layout ~= LAYOUT then return { 'layout', layout } end
redis.call('ZCARD', ready) -- a foreign type is found before anything is written
local opened, form
if filter then
  opened, form = open_filter(fingerprints, filter)
  if form then return { 'filter', form } end
else
  form = stored_form(fingerprints)
  if form ~= '' and form ~= 'set' then return { 'filter', form or '' } end
end

local number = order_numbers(counters, 1) + 1 -- first: where Redis is out of memory, nothing else is written
local is_new = true
if fingerprint ~= '' and opened then
  opened:ready(now_ms())
  is_new = not opened:seen(fingerprint)
  opened:close()
elseif fingerprint ~= '' then
  is_new = redis.call('SADD', fingerprints, fingerprint) == 1
end
if is_new then enqueue(ready, order, number, score, payload) end
return { is_new and 'stored' or 'seen', '' }
