-- A fencing token, or a time, as it is stored; 0 for what is none: text, or a number that a double does not count exactly.
local function fence_of(text)
  local value = string.match(text or '', '^%d+$') and #text <= 16 and tonumber(text)
  return value and value < 9007199254740000 and value or 0
end
