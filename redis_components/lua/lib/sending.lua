-- When the requests of a lane with a rate are sent, each at a time that no other has. Needs lib/lanes; of its state there: tat, times, apart and the buckets of quotas.
local AHEAD_MS = 200 -- so far ahead leases are handed out, each with the time at which it may be sent
local MARGIN_MS = 35 -- requests arrive up to so much later than they should: 12 by LATE_S in timed_leases.py, 23 on the ways from Redis and to the site
local APART = 1.045 -- the usual distance; what is left to the margin evens out what was caught up with
local MARGIN = 1.05 -- the same of a rate that is not counted by a log: so much farther apart
local MOST_LOGGED = 100 -- requests per second: of more no log is kept
local CLOSEST = 0.7 -- of the usual distance: so close requests come while what was missed is caught up with
local MOST_MISSED = 5 -- times that are caught up with: who was away for longer begins again
local BUCKETS = 60
local HOUR_MS = 3600000

-- How far apart requests are sent (ms) by the rate of a lane, and by the one that complaints have lowered it to (nil: none); nil where there is neither. A rate
-- without bursts holds in every window, also where some are not sent: a log of the last times says so, at most `most` in `window` ms. With bursts it is a token
-- bucket, kept as the time at which it would be full again (tat, GCRA).
local function spacing(rate, burst, slowed)
  if not rate and not slowed then return nil end
  local law = { burst = rate and burst or 1, apart = 0 }
  if rate and burst == 1 and rate <= MOST_LOGGED then
    law.most = math.max(1, math.floor(rate))
    law.window = law.most * 1000 / rate + MARGIN_MS
    law.apart = math.max(1000 * APART / rate, law.window / law.most)
  elseif rate then
    law.apart = 1000 * MARGIN / rate
  end
  if slowed then law.apart = math.max(law.apart, 1000 / slowed) end
  return law
end

local function logged(log, place)
  return struct.unpack('>d', string.sub(log, 8 * place - 7, 8 * place))
end

-- The times (ms) of up to `most` requests that may be sent until now + AHEAD_MS, the time at which it would be the turn of the first one, and when the next one
-- may be sent where there are none; and the log. `known` is tat and that.
local function sending_times(law, known, now, most)
  local times, tat, log = {}, tonumber(known[1] or 0) or 0, law.most and known[2] or ''
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

-- The first `taken` of the times of `allowed` (lib/pacing) are used. Returns whether the state was used in this hour before, so that it need not be told to last.
local function take_times(state, allowed, taken)
  local law, tat = allowed.law, allowed.turn + (taken + allowed.law.burst - 1) * allowed.law.apart
  local told = { 'tat', string.format('%.3f', tat), 'apart', string.format('%.3f', law.apart) }
  if law.most then
    local log = { allowed.log or '' }
    for n = 1, taken do log[n + 1] = struct.pack('>d', allowed.times[n]) end
    told[5], told[6] = 'times', string.sub(table.concat(log), -16 * law.most) -- twice as many as count: some may be given back
  end
  redis.call('HSET', state, unpack(told))
  local hour = law.burst * law.apart < HOUR_MS and math.floor(tat / HOUR_MS)
  return hour == math.floor((tonumber(allowed.tat or nil) or 0) / HOUR_MS)
end

local function bucket(window, at)
  return window .. ':' .. string.format('%.0f', math.floor(at / math.max(1, math.floor(window / BUCKETS))))
end

-- A request that was to be sent at `at` (ms) was not: another one may be in its place.
local function free_time(limits, lane, at)
  local state = limits .. ':' .. lane
  local known = redis.call('HMGET', state, 'tat', 'times', 'apart', 'quotas')
  local log = known[2] or ''
  for place = math.floor(#log / 8), 1, -1 do
    if logged(log, place) == at then
      local turn = (tonumber(known[1] or 0) or 0) - (tonumber(known[3] or 0) or 0)
      redis.call('HSET', state, 'times', string.sub(log, 1, 8 * place - 8) .. string.sub(log, 8 * place + 1), 'tat', string.format('%.3f', turn))
      break
    end
  end
  for window in string.gmatch(known[4] or '', '%d+') do
    local field = bucket(window, at)
    if (tonumber(redis.call('HGET', state, field) or 0) or 0) > 0 then count_in(state, field, -1) end
  end
end
