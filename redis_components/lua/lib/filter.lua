-- The dupefilters that are not a plain set: open_filter, then filter:ready, filter:seen for each entry, and filter:close.
-- Needs lib/filter_state, lib/buckets and lib/bloom. The options are those of redis_components/filters.py.
-- Steps of each exchange for work that was left to later ones, in addition to two for each entry that it asks for. With n parts waiting it does n^2 times as
-- much: a part of 80 bits has 65,536 keys however few its entries, and small bounds must not make them faster than they go.
local SWEPT = 128 -- keys removed
local MOST_LEFT = 20000 -- so that Redis is not held for long

local function new_generation(state, options, now)
  state.generations[#state.generations + 1] = new_part(state, now, { n = 0, buckets = options.roots, born = now })
end

-- Begin a new generation where the newest has its share of the entries or of the time, and drop what is too many or too old.
local function rotate(state, options, now)
  local gens, dirty = state.generations, false
  for _, part in ipairs(gens) do
    if part.born > now then part.born, dirty = now, true end -- the clock went back: it would not be due before it comes there again
  end
  local function entries()
    local sum = 0
    for _, part in ipairs(gens) do sum = sum + part.n end
    return sum
  end
  local function due()
    local newest = gens[#gens]
    return (options.max_age_ms > 0 and now - newest.born >= options.max_age_ms / options.generations)
      or (options.max_entries > 0 and newest.n >= options.max_entries / options.generations)
  end
  if due() then
    new_generation(state, options, now)
    dirty = true
  end
  while #gens > options.generations
    or (#gens > 1 and options.max_age_ms > 0 and now - gens[1].born >= options.max_age_ms)
    or (#gens > 1 and options.max_entries > 0 and entries() >= options.max_entries)
  do
    local oldest = table.remove(gens, 1)
    throw_away(state, oldest, oldest.buckets)
    dirty = true
  end
  return dirty
end

-- Make what is missing and drop what is due; before the first seen_before, where writing is allowed.
local function ready_filter(filter, now)
  local state, options = filter.state, filter.options
  filter.now = now
  if options.kind ~= 'bloom' then
    if #state.generations == 0 then
      new_generation(state, options, now)
      filter.dirty = true
    end
    filter.share = options.generations and options.max_entries > 0 and options.max_entries / options.generations or math.huge
    if options.generations and rotate(state, options, now) then filter.dirty = true end
  end
end

-- True if an older generation holds the entry. Where meeting it again renews it, it moves: into the newest, or (by hits) into the next younger one.
local function in_older(filter, hash, number)
  local gens, roots, renew = filter.state.generations, filter.options.roots, filter.options.renew
  for place = #gens - 1, 1, -1 do
    if renew == 'written' then
      if holds_entry(gens[place], roots, hash, number) then return true end
    elseif remove_entry(gens[place], roots, hash, number) then
      filter.dirty = true
      if renew == 'hits' then add_entry(gens[place + 1], roots, hash, number) end
      return true
    end
  end
  return false
end

-- True where the entry was seen before; it is from now on.
local function seen_before(filter, entry)
  local state, options = filter.state, filter.options
  filter.met = filter.met + 1
  if options.kind == 'bloom' then
    if not add_item(state, options, filter.now, item_of(entry)) then return true end
    filter.dirty = true
    return false
  end
  local number, hash = entry_parts(entry, options.roots)
  local gens, roots = state.generations, options.roots
  if gens[#gens].n >= filter.share and rotate(state, options, filter.now) then filter.dirty = true end
  local newest = gens[#gens]
  if #gens > 1 and options.renew ~= 'met' and (holds_entry(newest, roots, hash, number) or in_older(filter, hash, number)) then return true end
  if not add_entry(newest, roots, hash, number) then return true end
  filter.dirty = true
  return options.renew == 'met' and in_older(filter, hash, number)
end

-- The bounded work that each exchange leaves to the next ones, and the counts.
local function close_filter(filter)
  local state, options = filter.state, filter.options
  filter.dirty = sweep_garbage(state, math.min(MOST_LEFT, (SWEPT + 2 * filter.met) * (#state.garbage) ^ 2)) or filter.dirty
  if filter.dirty then save_state(state, options.form) end
end

-- The filter at `base`; or nil and the form of another one that is there ('' where the key is not ours). Only reads.
local function open_filter(base, options)
  local form = stored_form(base)
  if form ~= '' and form ~= options.form then return nil, form or '' end
  local state = load_state(base)
  if not state then return nil, '' end
  return {
    state = state, options = options, dirty = false, met = 0,
    ready = ready_filter, seen = seen_before, close = close_filter,
  }
end
