-- Since when READY requests wait, by their order numbers (lib/order_numbers). The order `random` and a queue class of the user's have no times.
local SINCE_2001_US = 1e15 -- smaller ones are not times, but of an older Trawl, or random

-- When a member was stored first, in microseconds; nil where its number is not a time.
local function stored_us(member, now_us)
  if not member or #member < 9 then return nil end
  local number = struct.unpack('>I8', member)
  if number > now_us then number = 2 ^ 52 - number end -- of the order `lifo` (lib/ready_requests)
  return number >= SINCE_2001_US and number <= now_us and number or nil
end

-- The oldest of what would be leased first and last, and of the first with the score of the last; nil where nothing is known. Exact where there are two scores
-- at most; of more, those in the middle are not looked at.
local function oldest_us(key, now_us)
  local first, last = redis.call('ZRANGE', key, 0, 0)[1], redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  if not first then return nil end
  local least = redis.call('ZRANGEBYSCORE', key, last[2], last[2], 'LIMIT', 0, 1)[1]
  local oldest
  for _, member in ipairs({ first, last[1], least or first }) do
    local at = stored_us(member, now_us)
    if at and (not oldest or at < oldest) then oldest = at end
  end
  return oldest
end
