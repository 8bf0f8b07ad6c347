-- The hash at the base key of a dupefilter that is not a plain set (needs lib/filter_form). Its entries are in parts: part `id` has the keys <base>:<id in base 36>:<0, 1, ...>,
-- all in the slot of the base key and nowhere declared, since they are as many as the entries need.
--   form         kind, and the parameters that decide how entries are stored
--   last         id of the last part; ids are times in ms, so that what an older filter left behind is never taken for an entry
--   size         entries
--   generations  parts of exact buckets, oldest first: id, entries, buckets, time of making in ms
--   leaving      parts that a filter of the kind `window` of an older version has, until it is cleared: id, entries, buckets, first bucket
--   layers       parts of Bloom bitmaps, or of keys of RedisBloom (k = 0), oldest first: id, entries, k, blocks or keys, capacity
--   garbage      parts whose keys wait to be removed: id, next key, keys
local FILTER_PARTS = {
  generations = { 'id', 'n', 'buckets', 'born' }, leaving = { 'id', 'n', 'buckets', 'next' },
  layers = { 'id', 'n', 'k', 'blocks', 'capacity' }, garbage = { 'id', 'next', 'keys' },
}

-- With 65,536 buckets of few entries each byte of a key's name counts.
local function in_base_36(number)
  local text = ''
  repeat
    local digit = number % 36
    text = string.sub('0123456789abcdefghijklmnopqrstuvwxyz', digit + 1, digit + 1) .. text
    number = (number - digit) / 36
  until number == 0
  return text
end

local function name_part(base, part)
  part.prefix = base .. ':' .. in_base_36(part.id) .. ':'
  return part
end

local function parse_parts(base, names, text)
  local parts = {}
  for record in string.gmatch(text, '[^,]+') do
    local part, n = {}, 0
    for value in string.gmatch(record, '[^:]+') do
      n = n + 1
      part[names[n] or 'more'] = tonumber(value) or error('no number: ' .. value)
    end
    if n ~= #names then error('no part: ' .. record) end
    parts[#parts + 1] = name_part(base, part)
  end
  return parts
end

-- The state at `base`, which holds nothing or a filter of Trawl; nil where the hash holds what is not ours.
local function load_state(base)
  local fields = redis.call('HMGET', base, 'last', 'generations', 'leaving', 'layers', 'garbage')
  local state = { base = base, last = tonumber(fields[1] or 0) }
  for place, kind in ipairs({ 'generations', 'leaving', 'layers', 'garbage' }) do
    local sound, parts = pcall(parse_parts, base, FILTER_PARTS[kind], fields[place + 1] or '')
    if not sound then return nil end
    state[kind] = parts
  end
  return state.last and state or nil
end

local function save_state(state, form)
  local values, size = { form = form, last = string.format('%.0f', state.last) }, 0
  for kind, names in pairs(FILTER_PARTS) do
    local records = {}
    for place, part in ipairs(state[kind]) do
      local record = {}
      for i, name in ipairs(names) do record[i] = string.format('%.0f', part[name]) end
      records[place] = table.concat(record, ':')
      if kind ~= 'garbage' then size = size + part.n end
    end
    values[kind] = table.concat(records, ',')
  end
  redis.call('HSET', state.base, 'form', values.form, 'last', values.last, 'size', string.format('%.0f', size), 'generations', values.generations,
    'leaving', values.leaving, 'layers', values.layers, 'garbage', values.garbage)
end

local function new_part(state, now, part)
  state.last = math.max(state.last + 1, now)
  part.id = state.last
  return name_part(state.base, part)
end

-- The keys of a part are removed later, a few at a time.
local function throw_away(state, part, keys)
  state.garbage[#state.garbage + 1] = name_part(state.base, { id = part.id, next = 0, keys = keys })
end

-- Remove up to `limit` keys of what was thrown away; true if there was anything.
local function sweep_garbage(state, limit)
  if not state.garbage[1] then return false end
  while limit > 0 and state.garbage[1] do
    local part = state.garbage[1]
    local keys, stop = {}, math.min(part.keys, part.next + math.min(limit, 1000)) -- as many as unpack can take
    for number = part.next, stop - 1 do keys[#keys + 1] = part.prefix .. number end
    if #keys > 0 then redis.call('UNLINK', unpack(keys)) end
    limit = limit - #keys
    part.next = stop
    if stop >= part.keys then table.remove(state.garbage, 1) end
  end
  return true
end
