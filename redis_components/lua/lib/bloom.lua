-- A scalable Bloom filter (Almeida et al. 2007) of blocked layers (Putze et al. 2007): an entry's bits are all in one block of 768 bits, which is
-- read and written alone, and the blocks are in keys of 341, so that no key is large. Needs lib/filter_state. Where the server has RedisBloom
-- when the filter is made, its commands do the work in the keys of one layer with k = 0.
-- An item is a number that chooses the block, and the seed of the generator (Park and Miller 1988, with 48271) whose numbers choose the bits.
local BLOCK, BLOCKS = 96, 341 -- bytes; blocks in a key: with Redis's own bytes it fills 32 KiB, so the allocator rounds nothing up
local NATIVE_KEYS = 16 -- of RedisBloom, whose layers are chained within a key
local FACTOR, PRIME = 48271, 2147483647
local WORDS = '<' .. string.rep('I4', BLOCK / 4) -- a block for writing; faster than its bytes
local MASKS = {}
for place = 0, 31 do MASKS[place] = 2 ^ place end

local offsets = {} -- of the blocks in a key, as text: Redis takes long to write a number

local function item_of(entry)
  local block, seed = struct.unpack('>I4I4', entry)
  return { block = block, seed = seed % (PRIME - 1) + 1, name = entry }
end

-- True if RedisBloom took the layer. Without it, or without the right to use it, nothing has happened.
local function made_native(layer, options)
  for number = 0, NATIVE_KEYS - 1 do
    local made = redis.pcall('BF.RESERVE', layer.prefix .. number, options.rate, math.ceil(layer.capacity / NATIVE_KEYS), 'EXPANSION', 2)
    if made.err then return false end
  end
  return true
end

local function new_layer(state, options, now)
  local plan = options.layers[math.min(#state.layers + 1, #options.layers)]
  local layer = new_part(state, now, { n = 0, k = plan[1], blocks = plan[2], capacity = plan[3] })
  if #state.layers == 0 and options.native and made_native(layer, options) then layer.k, layer.blocks = 0, NATIVE_KEYS end
  state.layers[#state.layers + 1] = layer
  return layer
end

local function layer_keys(layer)
  return layer.k == 0 and layer.blocks or math.ceil(layer.blocks / BLOCKS)
end

local function in_native(command, layer, item)
  return redis.pcall(command, layer.prefix .. item.block % layer.blocks, item.name) == 1
end

-- Key, offset and bytes of the item's block; no bytes where its key is not made yet, or is foreign.
local function block_of(layer, item)
  local number = item.block % layer.blocks
  local place = number % BLOCKS
  local offset = offsets[place]
  if not offset then
    offset = { tostring(place * BLOCK), tostring(place * BLOCK + BLOCK - 1) }
    offsets[place] = offset
  end
  layer.keys = layer.keys or {}
  local key = layer.keys[number - place]
  if not key then
    key = layer.prefix .. (number - place) / BLOCKS
    layer.keys[number - place] = key
  end
  local bytes = redis.pcall('GETRANGE', key, offset[1], offset[2])
  return key, offset[1], type(bytes) == 'string' and bytes or ''
end

local function has_bits(layer, item, bytes)
  local byte, band, random = string.byte, bit.band, item.seed
  if #bytes < BLOCK then return false end
  for _ = 1, layer.k do
    random = random * FACTOR % PRIME
    local place = random % (8 * BLOCK)
    local low = place % 8
    if band(byte(bytes, (place - low) / 8 + 1), MASKS[low]) == 0 then return false end
  end
  return true
end

local function layer_holds(layer, item)
  if layer.k == 0 then return in_native('BF.EXISTS', layer, item) end
  local _, _, bytes = block_of(layer, item)
  return has_bits(layer, item, bytes)
end

-- Set the item's bits; false where they were set already.
local function add_to_layer(layer, item)
  if layer.k == 0 then
    local added = in_native('BF.ADD', layer, item)
    if added then layer.n = layer.n + 1 end
    return added
  end
  local key, offset, bytes = block_of(layer, item)
  if has_bits(layer, item, bytes) then return false end
  if #bytes < BLOCK then
    redis.pcall('SETRANGE', key, BLOCKS * BLOCK - 1, '\0') -- at its full size: Redis would double a string that grows
    bytes = string.rep('\0', BLOCK)
  end
  local words, bor, random = { struct.unpack(WORDS, bytes) }, bit.bor, item.seed
  for _ = 1, layer.k do
    random = random * FACTOR % PRIME
    local place = random % (8 * BLOCK)
    local low = place % 32
    local at = (place - low) / 32 + 1
    words[at] = bor(words[at], MASKS[low])
  end
  redis.pcall('SETRANGE', key, offset, struct.pack(WORDS, unpack(words, 1, BLOCK / 4)))
  layer.n = layer.n + 1
  return true
end

-- True if a layer other than `but` holds the item.
local function in_layers(state, item, but)
  for place = #state.layers, 1, -1 do
    local layer = state.layers[place]
    if layer ~= but and layer_holds(layer, item) then return true end
  end
  return false
end

-- True where the item is new. It goes into the newest layer, or into a new one where that has its share of the false positives.
local function add_item(state, options, now, item)
  local newest = state.layers[#state.layers]
  if not newest or (newest.k > 0 and newest.n >= newest.capacity) then newest = new_layer(state, options, now) end
  return not in_layers(state, item, newest) and add_to_layer(newest, item)
end
