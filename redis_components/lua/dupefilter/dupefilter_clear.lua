-- Empty a dupefilter of any kind. It is empty with the first call; of its keys a bounded number is removed in each call, and by later exchanges.
--
-- KEYS[1] seen   (set, hash)  the filter; it keeps its entries in keys that begin with this one and so are in its slot (lib/filter_state)
-- ARGV[1] most   (count)      keys to remove in this call
-- Returns: keys that are left to remove; 0: nothing is left of what was there
-- Retry: safe
local seen, most = KEYS[1], tonumber(ARGV[1])

-- include: filter_form
-- include: filter_state
-- include: bloom

local form = stored_form(seen)
local state = form and form ~= '' and form ~= 'set' and load_state(seen)
if not state then
  redis.call('UNLINK', seen)
  return 0
end
for _, part in ipairs(state.generations) do throw_away(state, part, part.buckets) end
for _, part in ipairs(state.leaving) do throw_away(state, part, part.buckets) end
for _, layer in ipairs(state.layers) do throw_away(state, layer, layer_keys(layer)) end
state.generations, state.leaving, state.layers = {}, {}, {}
sweep_garbage(state, most)
local left = 0
for _, part in ipairs(state.garbage) do left = left + part.keys - part.next end
if left > 0 then save_state(state, form) else redis.call('UNLINK', seen) end
return left
