-- When the requests of a lane with a rate are sent, each at a time that no other has. Needs lib/lanes; of its state there: tat, times, apart and the buckets of quotas.
local AHEAD_MS = 200 -- so far ahead leases are handed out, each with the time at which it may be sent
local LATE_MS = 12 -- a request of a rate that could not be sent so long after its time is given back: later it would meet those of other processes
local MARGIN_MS = 35 -- requests arrive up to so much later than they should: by LATE_MS, and 23 on the ways from Redis and to the site
local APART = 1.045 -- the usual distance; what is left to the margin evens out what was caught up with
local MARGIN = 1.05 -- the same of a rate that is not counted by a log: so much farther apart
local MOST_LOGGED = 100 -- requests per second: of more the log does not count
local MOST_KEPT = 200 -- times of a token bucket, of which each may be given back
local CLOSEST = 0.7 -- of the usual distance: so close requests come while what was missed is caught up with
local MOST_MISSED = 5 -- times that are caught up with; after a longer absence a process begins again
local BUCKETS = 60
local MINUTE_MS, HOUR_MS = 60000, 3600000

-- Quotas of a lane without a rate are spread over their windows: `law` has a time apart at which no bucket is full before its time, and bursts of a minute's share.
local function spread(law, quotas)
  for place, quota in ipairs(quotas) do
    local n, window = quota[1], math.max(1, quota[2])
    local width = math.max(1, math.floor(window / BUCKETS))
    local share = math.max(1, math.floor(n * math.min(MINUTE_MS, width) / window))
    if not law.late then law.burst = place == 1 and share or math.min(law.burst, share) end
    law.apart = math.max(law.apart, (window + 2 * width) / n)
    law.width = math.min(law.width or width, width)
  end
  law.late = law.late or law.width and math.floor(0.9 * law.width) -- no window has more: the bucket that leaves it counts wholly (lib/pacing)
end

-- Interval between requests (ms) by the rate of a lane, by its quotas where no rate is set for it, and by the rate to which complaints have lowered it (nil:
-- none); nil where there is nothing of that. `late`: how long after its time a request may be sent (ms; nil: any). A rate
-- without bursts holds in every window, also where some are not sent: a log of the last times ensures it, at most `most` in `window` ms. What has bursts is a token
-- bucket, kept as the time at which it would be full again (tat, GCRA); its log only serves to give times back.
local function spacing(rate, burst, slowed, quotas)
  if not rate and not slowed and #(quotas or {}) == 0 then return nil end
  local law = { burst = rate and burst or 1, apart = 0, late = rate and LATE_MS }
  if rate and burst == 1 and rate <= MOST_LOGGED then
    law.most = math.max(1, math.floor(rate))
    law.window = law.most * 1000 / rate + MARGIN_MS
    law.apart = math.max(1000 * APART / rate, law.window / law.most)
  elseif rate then
    law.apart = 1000 * MARGIN / rate
  end
  spread(law, quotas or {})
  if slowed then law.apart = math.max(law.apart, 1000 / slowed) end
  if slowed and not rate then law.burst = 1 end
  return law
end

local function logged(log, place)
  return struct.unpack('>d', string.sub(log, 8 * place - 7, 8 * place))
end

-- The times (ms) of up to `most` requests that may be sent until now + AHEAD_MS, the time at which it would be the turn of the first one, and when the next one
-- may be sent where there are none; and the log. `known` is tat and that.
local function sending_times(law, known, now, most)
  local times, tat, log = {}, tonumber(known[1] or 0) or 0, known[2] or ''
  local count = math.floor(#log / 8)
  local last = count > 0 and logged(log, count) or -math.huge
  if last > now + AHEAD_MS + 1000 then -- of a Redis whose clock was ahead of this one's
    log, count, last, tat = '', 0, -math.huge, now + AHEAD_MS
  end
  local turn = math.max(tat, now)
  if law.most and last > now - law.window then turn = math.max(tat, now - MOST_MISSED * law.apart) end
  if law.burst > 1 then turn = math.max(tat, now) - (law.burst - 1) * law.apart end
  local at
  for n = 1, most do
    at = math.max(now, turn + (n - 1) * law.apart)
    if law.most then
      local place = count + n - law.most -- of the one that must have left the window
      local before = place > count and times[place - count] or place > 0 and logged(log, place)
      at = math.max(at, last + CLOSEST * law.apart, before and before + law.window or 0)
    end
    at = math.ceil(at)
    if at > now + AHEAD_MS then break end
    times[n], last = at, at
  end
  return times, turn, at, log
end

-- The first `taken` of the times of `allowed` (lib/pacing) are used. Returns true if the state was used in this hour before, so that its expiry need not be set.
local function take_times(state, allowed, taken)
  local law, tat = allowed.law, allowed.turn + (taken + allowed.law.burst - 1) * allowed.law.apart
  local log, keep, base = { allowed.log or '' }, law.most and 2 * law.most or MOST_KEPT, ''
  for n = 1, taken do log[n + 1] = struct.pack('>d', allowed.times[n]) end
  log = table.concat(log)
  if not law.most then -- what tat was before the first time of the log
    base = tonumber(allowed.base or nil)
    if not base then base, log = tonumber(allowed.tat or 0) or 0, string.sub(log, -8 * taken) end
    for place = 1, #log / 8 - keep do base = math.max(base, logged(log, place)) + law.apart end
    base = string.format('%.3f', base)
  end
  redis.call('HSET', state, 'tat', string.format('%.3f', tat), 'apart', string.format('%.3f', law.apart), 'times', string.sub(log, -8 * keep), 'base', base)
  local hour = law.burst * law.apart < HOUR_MS and math.floor(tat / HOUR_MS)
  return hour == math.floor((tonumber(allowed.tat or nil) or 0) / HOUR_MS)
end

local function bucket(window, at)
  return window .. ':' .. string.format('%.0f', math.floor(at / math.max(1, math.floor(window / BUCKETS))))
end

-- A lane may be sent more than when its next look was set.
local function look_soon(ready, lane, now)
  redis.call('ZADD', lanes_of(ready), 'XX', 'LT', now, lane)
end

-- A request that was to be sent at `at` (ms) was not: another one may be in its place.
local function free_time(limits, lane, at)
  local state = limits .. ':' .. lane
  local known = redis.call('HMGET', state, 'tat', 'times', 'apart', 'quotas', 'base')
  local log, apart, base = known[2] or '', tonumber(known[3] or 0) or 0, tonumber(known[5] or nil)
  for place = math.floor(#log / 8), 1, -1 do
    if logged(log, place) == at then
      log = string.sub(log, 1, 8 * place - 8) .. string.sub(log, 8 * place + 1)
      local turn = base or (tonumber(known[1] or 0) or 0) - apart
      for other = 1, base and #log / 8 or 0 do turn = math.max(turn, logged(log, other)) + apart end -- as if it had not been asked for
      redis.call('HSET', state, 'times', log, 'tat', string.format('%.3f', turn))
      break
    end
  end
  for quota in string.gmatch(known[4] or '', '[^ ]+') do
    local window, from = string.match(quota, '^(%d+)@(%d+)$')
    local field = window and bucket(window, at)
    if window and at >= tonumber(from) and (tonumber(redis.call('HGET', state, field) or 0) or 0) > 0 then count_in(state, field, -1) end
  end
end
