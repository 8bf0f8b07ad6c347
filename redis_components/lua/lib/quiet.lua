-- Quiet hours of lanes: times of the day in which nothing is sent. A limit has `quiet` = {{first minute, minute after the last}, ...} of the day of its zone, over
-- midnight where the first is the later one, and `offsets` = {{from ms, seconds east of UTC}, ...} of that zone, in order.
local DAY_MS = 86400000
local BEFORE_QUIET_MS = 3000 -- so long before them nothing is leased any more: what was sent has to arrive, on a slow network and at a busy machine

-- The readable pairs of a stored list; a writer to Redis may write anything.
local function pairs_of(stored)
  local found = {}
  for _, pair in ipairs(type(stored) == 'table' and stored or {}) do
    local first, second = tonumber(type(pair) == 'table' and pair[1] or nil), tonumber(type(pair) == 'table' and pair[2] or nil)
    if first and second then found[#found + 1] = { first, second } end
  end
  return found
end

local function ms_of_day(limit, at)
  local east_s = 0
  for _, offset in ipairs(limit.offsets) do
    if at >= offset[1] then east_s = offset[2] end
  end
  return (at + east_s * 1000) % DAY_MS
end

-- When the quiet hours end in which `at` (ms) or the time shortly after it lies; nil where it lies in none.
local function quiet_until(limit, at)
  local till
  for _, hours in ipairs(limit.quiet) do
    local first, length = hours[1] * 60000, (hours[2] - hours[1]) * 60000 % DAY_MS
    local since = (ms_of_day(limit, at + BEFORE_QUIET_MS) - first) % DAY_MS
    if since < length + BEFORE_QUIET_MS then till = math.max(till or 0, at + BEFORE_QUIET_MS + length - since) end
  end
  return till
end

-- For how long (ms) something may be sent from `at` on; nil where there are no quiet hours.
local function closes_in(limit, at)
  local soonest
  for _, hours in ipairs(limit.quiet) do
    local ms = (hours[1] * 60000 - ms_of_day(limit, at + BEFORE_QUIET_MS)) % DAY_MS
    soonest = math.min(soonest or ms, ms)
  end
  return soonest
end
