-- Remove entries from a dupefilter, so that their requests count as new again.
--
-- KEYS[1] seen     (set, hash)    the filter; it keeps its entries in keys that begin with this one and so are in its slot (lib/filter_state)
-- ARGV[1] filter   (msgpack map, nil)  kind and parameters, see redis_components/filters.py; nil for the plain set
-- ARGV[2] entries  (any number)   what the filter stores for each request
-- Returns: {form of another filter that is there ('' for none), for each entry 'forgotten', 'unknown' or 'kept' (a Bloom filter cannot remove it)}
-- Retry: safe; what is forgotten already is then unknown
local seen, filter = KEYS[1], cmsgpack.unpack(ARGV[1])
local entries = 2
local TOLD_S = 86400

-- include: clock
-- include: filter_form
-- include: filter_state
-- include: buckets
-- include: bloom
-- include: filter

local answer = { '' }
if filter then
  local opened, form = open_filter(seen, filter)
  if form == '' then return foreign_filter(seen) end
  if form then return { form } end
  for place = entries, #ARGV do answer[place] = opened:forget(ARGV[place]) end
  opened:close(true)
else
  local form = stored_form(seen)
  if form ~= '' and form ~= 'set' then return { form or 'foreign' } end
  for place = entries, #ARGV do answer[place] = redis.call('SREM', seen, ARGV[place]) == 1 and 'forgotten' or 'unknown' end
end
redis.call('SET', forgotten_key(seen), string.format('%.0f', now_ms()), 'EX', TOLD_S) -- crawlers ask more often than that
return answer
