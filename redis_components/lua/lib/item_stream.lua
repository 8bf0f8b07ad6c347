-- The item stream: a list, or a Redis stream with consumer groups where the crawl names groups. What is there decides: a crawler that does not know of the
-- groups yet adds to the stream, too. An entry of the stream has one field, `item`. Needs lib/item_count.
local MOST_MOVED = 500

local function add_to_stream(items, item)
  redis.call('XADD', items, '*', 'item', item)
end

-- Without a key, `groups` decides (nil or empty: a list).
local function item_adder(items, groups)
  local kind = redis.call('TYPE', items)['ok']
  if kind == 'stream' or (kind == 'none' and #(groups or {}) > 0) then return add_to_stream end
  return function(key, item) redis.call('RPUSH', key, item) end
end

local function id_parts(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

local function is_before(one, two)
  local ms, seq = id_parts(one)
  local other_ms, other_seq = id_parts(two)
  return ms < other_ms or (ms == other_ms and seq < other_seq)
end

-- The id from which on a group still needs the entries, and whether there are entries that it was never given or has not acknowledged.
local function needed_from(items, group, last_delivered)
  local pending = redis.call('XPENDING', items, group)
  if pending[1] > 0 then return pending[2] end
  local ms, seq = string.match(last_delivered, '^(%d+)%-(%d+)$')
  return string.format('%s-%.0f', ms, tonumber(seq) + 1)
end

-- The same over all groups, and their names as a set; no id where there is no group.
local function needed_by_all(items)
  local from, names = nil, {}
  for _, flat in ipairs(redis.call('XINFO', 'GROUPS', items)) do
    local group = {}
    for at = 1, #flat, 2 do group[flat[at]] = flat[at + 1] end
    names[group['name']] = true
    local needed = needed_from(items, group['name'], group['last-delivered-id'])
    if not from or is_before(needed, from) then from = needed end
  end
  return from, names
end

-- Items that wait: of a stream that all groups have acknowledged whole, none, also where it is not trimmed yet.
local function waiting_items(items)
  local command = item_command(items)
  local count = redis.call(command, items)
  if command == 'LLEN' or count == 0 then return count end
  local from = needed_by_all(items)
  local last = redis.call('XREVRANGE', items, '+', '-', 'COUNT', 1)[1]
  return from and last and is_before(last[1], from) and 0 or count
end

-- A list that was there before the crawl named groups becomes a stream, some of its items at a time; what is not moved yet is in `moving`.
local function move_list(items, moving, groups)
  if redis.call('TYPE', items)['ok'] == 'list' then
    if redis.call('EXISTS', moving) == 0 then
      redis.call('RENAME', items, moving)
    else
      for _, item in ipairs(redis.call('LPOP', items, MOST_MOVED)) do redis.call('RPUSH', moving, item) end
      if redis.call('EXISTS', items) == 1 then return end
    end
  end
  for _, group in ipairs(groups) do redis.pcall('XGROUP', 'CREATE', items, group, '0', 'MKSTREAM') end
  for _, item in ipairs(redis.call('LPOP', moving, MOST_MOVED) or {}) do add_to_stream(items, item) end
end

-- Make the stream of a crawl that names groups, each of which gets all that is in the stream; remove what every group has acknowledged.
local function tend_stream(items, moving, groups)
  local kind = redis.call('TYPE', items)['ok']
  if #groups > 0 and (kind == 'list' or redis.call('EXISTS', moving) == 1) then move_list(items, moving, groups) end
  kind = redis.call('TYPE', items)['ok']
  if kind ~= 'stream' and (kind ~= 'none' or #groups == 0) then return end
  local from, names = nil, {}
  if kind == 'stream' then from, names = needed_by_all(items) end
  for _, group in ipairs(groups) do
    if not names[group] then
      redis.call('XGROUP', 'CREATE', items, group, '0', 'MKSTREAM')
      from = nil
    end
  end
  if from then redis.call('XTRIM', items, 'MINID', from) end
end
