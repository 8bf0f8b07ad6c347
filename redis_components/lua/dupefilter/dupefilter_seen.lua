-- Ask a dupefilter that is used alone, other than the plain set, whether entries were seen before; they are from now on.
--
-- KEYS[1] seen     (hash)         the filter; it keeps its entries in keys that begin with this one and so are in its slot (lib/filter_state)
-- ARGV[1] filter   (msgpack map)  kind and parameters, see redis_components/filters.py
-- ARGV[2] entries  (any number)   what the filter stores for each request
-- Returns: {form of another filter that is there ('' for none), 0 or 1 (seen before) for each entry}
-- Retry: unsafe; a second try finds all of them seen
local seen, filter = KEYS[1], cmsgpack.unpack(ARGV[1])
local entries = 2

-- include: clock
-- include: filter_form
-- include: filter_state
-- include: buckets
-- include: bloom
-- include: filter

local opened, form = open_filter(seen, filter)
if form == '' then return foreign_filter(seen) end
if form then return { form } end
local answer = { '' }
opened:ready(now_ms())
for place = entries, #ARGV do answer[place] = opened:seen(ARGV[place]) and 1 or 0 end
opened:close()
return answer
