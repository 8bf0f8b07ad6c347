-- A scalable Bloom filter (Almeida et al. 2007) of blocked layers (Putze et al. 2007): an entry's bits are all in one block of 1,024 bits, which is
-- read and written by itself, and the blocks are in keys of 255, so that no key is large. Needs lib/filter_state. Where the server has RedisBloom
-- when the filter is made, its commands do the work in the keys of one layer with k = 0.
-- An item is 4 bytes that choose the block, then for up to 16 bits the byte within the block (1 to 128) and, in 16 more bytes, the mask within the byte.
local BLOCK, BLOCKS = 128, 255 -- bytes; blocks in a key: with Redis's own bytes it fills 32 KiB, so the allocator rounds nothing up
local ITEM, ITEM_BITS = 36, 16
local NATIVE_KEYS = 16 -- of RedisBloom, whose layers are chained within a key

local function new_layer(state, options, now)
  local plan = options.layers[math.min(#state.layers + 1, #options.layers)]
  local layer = new_part(state, now, { n = 0, k = plan[1], blocks = plan[2], capacity = plan[3] })
  if #state.layers == 0 and options.native and type(redis.pcall('BF.EXISTS', layer.prefix .. 0, '')) == 'number' then
    layer.k, layer.blocks = 0, NATIVE_KEYS
    for number = 0, NATIVE_KEYS - 1 do
      redis.call('BF.RESERVE', layer.prefix .. number, options.rate, math.ceil(layer.capacity / NATIVE_KEYS), 'EXPANSION', 2)
    end
  end
  state.layers[#state.layers + 1] = layer
  return layer
end

local function layer_keys(layer)
  return layer.k == 0 and layer.blocks or math.ceil(layer.blocks / BLOCKS)
end

-- Key, offset and bytes of the item's block; no bytes where its key is not made yet, or is somebody else's.
local function block_of(layer, item)
  local number = struct.unpack('>I4', item) % layer.blocks
  local key, offset = layer.prefix .. math.floor(number / BLOCKS), number % BLOCKS * BLOCK
  local bytes = redis.pcall('GETRANGE', key, offset, offset + BLOCK - 1)
  return key, offset, type(bytes) == 'string' and bytes or ''
end

local function has_bits(layer, item, bytes)
  local byte, band = string.byte, bit.band
  if #bytes < BLOCK then return false end
  for i = 5, 4 + layer.k do
    if band(byte(bytes, byte(item, i)), byte(item, ITEM_BITS + i)) == 0 then return false end
  end
  return true
end

local function layer_holds(layer, item)
  if layer.k == 0 then
    return redis.pcall('BF.EXISTS', layer.prefix .. struct.unpack('>I4', item) % layer.blocks, item) == 1
  end
  local _, _, bytes = block_of(layer, item)
  return has_bits(layer, item, bytes)
end

-- Set the item's bits; false where they were set already.
local function add_to_layer(layer, item)
  if layer.k == 0 then
    local added = redis.pcall('BF.ADD', layer.prefix .. struct.unpack('>I4', item) % layer.blocks, item) == 1
    if added then layer.n = layer.n + 1 end
    return added
  end
  local key, offset, bytes = block_of(layer, item)
  if has_bits(layer, item, bytes) then return false end
  if #bytes < BLOCK then
    redis.pcall('SETRANGE', key, BLOCKS * BLOCK - 1, '\0') -- at its full size: Redis would double a string that grows
    bytes = string.rep('\0', BLOCK)
  end
  local changed, byte, bor = { string.byte(bytes, 1, BLOCK) }, string.byte, bit.bor
  for i = 5, 4 + layer.k do
    local place = byte(item, i)
    changed[place] = bor(changed[place], byte(item, ITEM_BITS + i))
  end
  redis.pcall('SETRANGE', key, offset, string.char(unpack(changed)))
  layer.n = layer.n + 1
  return true
end

-- The newest layer, or a new one where that has as many entries as its share of false positives allows.
local function layer_with_room(state, options, now)
  local newest = state.layers[#state.layers]
  if newest and (newest.k == 0 or newest.n < newest.capacity) then return newest end
  return new_layer(state, options, now)
end

-- Whether a layer other than `but` holds the item.
local function in_layers(state, item, but)
  for place = #state.layers, 1, -1 do
    local layer = state.layers[place]
    if layer ~= but and layer_holds(layer, item) then return true end
  end
  return false
end

local item_tables
-- The item of an exact entry, as filters.py makes it.
local function item_of(entry)
  if not item_tables then
    item_tables = { {}, {}, {} }
    for n = 0, 255 do
      local hex = string.format('%02x', n)
      item_tables[1][hex], item_tables[2][hex], item_tables[3][hex] = string.char(n), string.char(n % 128 + 1), string.char(2 ^ (n % 8))
    end
  end
  local first, second = redis.sha1hex(entry .. '0'), redis.sha1hex(entry .. '1')
  local block = string.gsub(string.sub(first, 1, 8), '%x%x', item_tables[1])
  local places = string.gsub(string.sub(first, 9), '%x%x', item_tables[2])
  local masks = string.gsub(string.sub(second, 1, 32), '%x%x', item_tables[3])
  return block .. places .. masks
end
