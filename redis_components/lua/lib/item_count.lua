-- The command that counts the items of a list, or of a Redis stream (lib/item_stream); no items are a list of none, and a foreign type does not answer to it.
local function item_command(items)
  return redis.call('TYPE', items)['ok'] == 'stream' and 'XLEN' or 'LLEN'
end
