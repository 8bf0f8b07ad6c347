-- Return the present constraints on lanes, in addition to their limits.
--
-- KEYS[1] limits  (hash)  limits of lanes (lib/lanes); the lanes' own keys begin with this one
-- KEYS[2] states  (any number)  state of each lane (hash)
-- ARGV[1] now     (ms)          the moment
-- ARGV[2] fields  (any number)  of the states
-- Returns: for each lane when its next request may be sent (ms), the most in a window (ms) of which nothing is left and when one frees (ms), 0 for what there is not;
--   and the values of these fields, nil for what it does not have
-- Retry: safe; it only reads
local limits, states = KEYS[1], 2
local now, fields = tonumber(ARGV[1]), 2

-- include: many
-- include: score
-- include: lanes
-- include: ready_requests
-- include: quiet
-- include: sending
-- include: pacing

local found = {}
for place = states, #KEYS do
  local state = KEYS[place]
  local lane = string.sub(state, #limits + 2)
  local limit, known, law = obeyed(limits, lane, redis.pcall('HGET', limits, lane), now)
  local _, frees, spent = allowed_by_quotas(limit, state, now, came_back_older(limits), forgotten_by(law))
  local times, _, at = {}, nil, 0
  if law then times, _, at = sending_times(law, { known[1], known[6] }, now, 1) end
  spent = spent or { 0, 0 }
  local row = { math.max(times[1] or at, frees), spent[1], spent[2], frees }
  for n, value in ipairs(redis.call('HMGET', state, unpack(ARGV, fields))) do row[4 + n] = value end
  found[#found + 1] = row
end
return found
