-- Ask whether one request may be sent now that is none of the frontier's, as a probe or a page that an operator looks at: it counts against the limits of its lane.
--
-- KEYS[1] limits  (hash)  limits of lanes (lib/lanes), and their version; the lane's own keys begin with this one
-- ARGV[1] claim   (text)  names the request among those at work
-- ARGV[2] keep_ms (ms)    for how long it counts as at work, unless its end is reported
-- ARGV[3] names   (any number)  the lanes that it may belong to, the nearest first; the first one that has limits counts
-- Returns: {state, ms, lane}: `free` (no lane has limits), `send` (in ms), or `wait` (nothing may be sent before ms; ask again then)
-- Retry: unsafe; a permit whose answer is lost counts against the limits, and that is all
local limits = KEYS[1]
local claim, keep_ms = ARGV[1], tonumber(ARGV[2])
local names = 3

-- include: clock
-- include: many
-- include: score
-- include: lanes
-- include: ready_requests
-- include: quiet
-- include: sending
-- include: pacing

local now = now_ms()
redis.call('HLEN', limits) -- a foreign type is found before anything is written
local lane
for place = names, #ARGV do
  if not lane and ARGV[place] ~= 'version' and redis.call('HEXISTS', limits, ARGV[place]) == 1 then lane = ARGV[place] end
end
if not lane then return { 'free', 0, '' } end
local waits = turns.waits(limits, lane, claim, now)
local allowed, again = allowance(limits, lane, redis.pcall('HGET', limits, lane), now, 1)
if not allowed or waits then return { 'wait', math.max(1, math.ceil((again or now) - now)), lane } end
turns.take(limits, lane, claim, false, now)
spend(limits, lane, allowed, 1, { claim }, now)
if allowed.limit.concurrency then redis.call('ZADD', busy_key(limits, lane), 'XX', now + keep_ms, claim) end
return { 'send', math.max(0, allowed.times and allowed.times[1] - now or 0), lane }
