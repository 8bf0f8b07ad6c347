-- A score as ZADD takes it; nil where the text is not a number. Redis refuses one that is too large or too small for a double, or has a space next to it, in the
-- middle of a script, which is not rolled back; and what is not finite could not come back from the DEAD list.
local function zset_score(text)
  local number = tonumber(text)
  if not number or number ~= number then return nil end
  return string.format('%.17g', math.max(-1e300, math.min(1e300, number)))
end
