-- When requests of lanes are leased (lib/lanes has the keys), and how sites are left alone. Needs lib/many, lib/lanes, lib/sending, lib/ready_requests, lib/score
-- and lib/quiet.
local MOST_LANES = 50
local MOST_LATER = 500
local FORGOTTEN_MS = 600000
local STATE_S = 172800
local MOST_FIELDS = 400
local LONGEST_LOOK_MS = 5000 -- between two looks at a lane that waits: an operator may have changed its limits
local SLOWER, SLOWEST, ONE_COMPLAINT_MS = 0.7, 0.2, 2000 -- see `slow_down`
local FIRST_RETURN_S, RETURN_S, LONGEST_RETURN_S = 10, 20, 120 -- see `next_curve`
local FIRST_WAIT_MS, LONGEST_WAIT_MS, PEACE_MS = 60000, 86400000, 1800000

-- The place of a request whose lane is '' or not.
local function to_ready(ready, lane, score, member)
  if lane == '' then
    redis.call('ZADD', ready, score, member)
  else
    to_lane(ready, lane, score, member)
  end
end

-- The requests whose time has come go to READY, or to their lanes.
local function wake_later(ready, now)
  local later = ready .. ':later'
  for _, value in ipairs(redis.call('ZRANGEBYSCORE', later, '-inf', now, 'LIMIT', 0, MOST_LATER)) do
    local score, lane, member = string.match(value, '^([^@]*)@([^|]*)|(.*)$')
    redis.call('ZREM', later, value)
    to_ready(ready, lane or '', zset_score(score) or 0, member or value)
  end
  local next_one = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
  if next_one[2] then
    redis.call('ZADD', lanes_of(ready), next_one[2], LATER)
  else
    redis.call('ZREM', lanes_of(ready), LATER)
  end
end

-- Let processes learn of a lane, or of its limits, that they do not know as they are.
local function tell_limits(limits, lane, now)
  redis.pcall('HSETNX', limits, lane, '{}')
  local version = redis.pcall('HINCRBY', limits, 'version', 1)
  if type(version) == 'table' then redis.pcall('HSET', limits, 'version', now) end -- a foreign value
end

-- The rate to which complaints have lowered a lane, nil where there were none in half an hour: `slowed` at `slowed_at`, and since then on the curve of CUBIC (RFC
-- 9438) to `slowed_top`: quickly near it, slowly past it after `slowed_return` s, then faster and faster. A straight line of the same mean would complain
-- twice as often, one that complains as often lies a tenth lower.
local function slowed_rate(known, now)
  local rate, at, top = tonumber(known[1] or nil), tonumber(known[2] or nil), tonumber(known[3] or nil)
  if not rate or not at or not top or at < now - PEACE_MS then return nil end
  local return_s = math.max(1, tonumber(known[4] or nil) or RETURN_S)
  local gap, left = math.max(top - rate, 0.1 * top), 1 - math.max(0, now - at) / 1000 / return_s
  return math.max(rate, top - gap * left ^ 3)
end

-- The target of the next curve, the share of it at which it begins, and its duration: after a complaint at the rate `from`, `since_s` after the last one (nil:
-- the first one). What was sent at first is known roughly, so whether the site takes more is soon tried.
local function next_curve(known, from, since_s)
  if not since_s then return from, SLOWER, FIRST_RETURN_S end
  local top, return_s = tonumber(known[3] or nil), tonumber(known[4] or nil) or RETURN_S
  if from < 0.9 * top or from > 1.3 * top then return 0.85 * from, SLOWER / 0.85, RETURN_S end -- its capacity is not known any more
  if since_s < return_s then return 0.97 * from, 0.9, math.max(return_s, RETURN_S) end -- a little less than was thought
  return (top + from) / 2, 0.9, math.max(RETURN_S, math.min(2 * return_s, LONGEST_RETURN_S)) -- it took `top` all the time: more is tried less often
end

-- A site complained: by 429 or 503, by an answer that did not come, or by one that took far longer than before. Its rate is multiplied by 0.7, or by 0.9 near the
-- rate that it is known to take, once in two seconds, however many processes report it; `rate` is what all of them sent to it, where it has no limit yet. It recovers
-- automatically. `single`: the process saw no other refusal of late, which counts only where more was tried than the site is known to take.
local function slow_down(limits, lane, rate, now, single)
  local state = limits .. ':' .. lane
  local known = redis.call('HMGET', state, 'slowed', 'slowed_at', 'slowed_top', 'slowed_return')
  local slowed, since_ms = slowed_rate(known, now), now - (tonumber(known[2] or nil) or 0)
  local is_trying = slowed and since_ms >= 500 * (tonumber(known[4] or nil) or RETURN_S)
  if (single and not is_trying) or (slowed and since_ms < ONE_COMPLAINT_MS) then return end
  local own = tonumber(string.match(redis.pcall('HGET', limits, lane) or '', '"rate":([%d.e+-]+)') or nil)
  local from = math.min(slowed or rate, own or math.huge)
  local top, share, return_s = next_curve(known, from, slowed and since_ms / 1000)
  local lowered = math.max(top * share, math.min(SLOWEST, from))
  redis.call('HSET', state, 'slowed', string.format('%.4f', lowered), 'slowed_at', now, 'slowed_top', string.format('%.4f', math.max(top, lowered)), 'slowed_return', return_s)
  redis.call('EXPIRE', state, STATE_S)
  if redis.pcall('HEXISTS', limits, lane) ~= 1 then tell_limits(limits, lane, now) end
end

-- The site of a lane wants to be left alone for `ms`; with 0 it gave no time: 60 s, doubled each time until it was at peace for half an hour, with
-- jitter. Reports of several processes of one moment count once. `refusals` are those of a time without half an hour of peace, which began at `refused_since`.
local function keep_off(limits, lane, ms, now)
  local state = limits .. ':' .. lane
  local known = redis.call('HMGET', state, 'until', 'step', 'asked', 'refusals')
  local till, step, asked = tonumber(known[1] or 0) or 0, tonumber(known[2] or 0) or 0, tonumber(known[3] or 0) or 0
  local at_peace = math.max(asked, till) < now - PEACE_MS
  if ms == 0 then
    if till > now then return end
    if asked < now - PEACE_MS - FIRST_WAIT_MS * 2 ^ step then step = 0 end
    local jitter = 0.75 + (tonumber(string.sub(redis.sha1hex(lane .. now), 1, 4), 16) / 65535) / 2
    ms = math.floor(math.min(FIRST_WAIT_MS * 2 ^ step, LONGEST_WAIT_MS) * jitter)
    step = math.min(step + 1, 20)
  end
  if at_peace then redis.call('HSET', state, 'refusals', 0, 'refused_since', now) end
  if till <= now then count_in(state, 'refusals', 1) end
  redis.call('HSET', state, 'until', math.max(till, now + math.min(ms, LONGEST_WAIT_MS)), 'step', step, 'asked', now)
  redis.call('EXPIRE', state, STATE_S)
  tell_limits(limits, lane, now)
end

-- When Redis was seen to have come back older (ms); false where that is long ago. Up to a second of what was sent is not in its state then: a lane waits for as
-- long as if it had sent all that it may.
local older_at
local function came_back_older(limits)
  if older_at == nil then
    local at = redis.pcall('GET', older_key(limits))
    older_at = type(at) == 'string' and tonumber(at) or false
  end
  return older_at
end

-- Number of further requests that the quotas allow; where that is none, the time when one frees and the quota that frees last. Each window is counted in buckets, the one that leaves it
-- wholly, so that no window of that length ever has more, wherever it begins. `forgotten` requests were perhaps sent at `older` and are in no bucket.
local function allowed_by_quotas(limit, state, now, older, forgotten)
  local left, again, spent = math.huge, now, nil
  for _, quota in ipairs(limit.quotas) do
    local n, window = quota[1], quota[2]
    local width = math.max(1, math.floor(window / BUCKETS))
    local fields, sum, counts = {}, older and older > now - window and forgotten or 0, {}
    for back = BUCKETS + 1, -1, -1 do fields[#fields + 1] = bucket(window, now - back * width) end -- the next one counts, too: times are ahead
    for place, counted in ipairs(redis.call('HMGET', state, unpack(fields))) do
      counts[place] = tonumber(counted or 0) or 0
      sum = sum + counts[place]
    end
    left = math.min(left, n - sum)
    local place = 0
    while sum >= n and place < #counts do
      place = place + 1
      sum = sum - counts[place]
    end
    local frees = place > 0 and (math.floor(now / width) + place) * width or 0
    if frees > again then again, spent = frees, quota end
  end
  return math.max(0, left), again, spent
end

-- Buckets that no window reaches any more, where there are many.
local function forget_buckets(state, now)
  if redis.call('HLEN', state) < MOST_FIELDS then return end
  for _, field in ipairs(redis.call('HKEYS', state)) do
    local window, bucket = string.match(field, '^(%d+):(%d+)$')
    local width = window and math.max(1, math.floor(tonumber(window) / BUCKETS))
    if window and tonumber(bucket) < math.floor(now / width) - BUCKETS - 1 then redis.call('HDEL', state, field) end
  end
end

-- Each counts in the bucket of its time, where it may be taken off again (`free_time`), as what is sent from the first counted time on: a quota may be new.
local function count_quotas(limit, state, times, taken)
  local windows, known = {}, ' ' .. (#limit.quotas > 0 and redis.call('HGET', state, 'quotas') or '')
  for _, quota in ipairs(limit.quotas) do
    local window = string.format('%.0f@', quota[2])
    windows[#windows + 1] = window .. (string.match(known, ' ' .. window .. '(%d+)') or string.format('%.0f', times[1]))
    for n = 1, taken do count_in(state, bucket(quota[2], times[n]), 1) end
  end
  if #windows == 0 then return end
  redis.call('HSET', state, 'quotas', table.concat(windows, ' '))
  forget_buckets(state, times[1])
end

-- A lane that had no limits but a wait, long ago: its requests are like others from now on.
local function forget_lane(limits, lane)
  redis.call('HDEL', limits, lane)
  redis.pcall('HINCRBY', limits, 'version', 1)
end

local read_limits = {} -- by their text: many lanes have the same

local function limit_of(text)
  if type(text) ~= 'string' then text = '' end
  if read_limits[text] then return read_limits[text] end
  local readable, limit = pcall(cjson.decode, text)
  if not readable or type(limit) ~= 'table' then limit = {} end
  limit.rate, limit.burst = tonumber(limit.rate), math.max(1, tonumber(limit.burst) or 1)
  limit.concurrency, limit.weight = tonumber(limit.concurrency), math.max(1, math.floor(tonumber(limit.weight) or 1))
  limit.quotas, limit.quiet, limit.offsets = pairs_of(limit.quotas), pairs_of(limit.quiet), pairs_of(limit.offsets)
  limit.only_asked = text == '{}'
  read_limits[text] = limit
  return limit
end

-- The constraints on a lane now: its limit, its state, and the law by which its requests are spaced.
local function obeyed(limits, lane, text, now)
  local state = limits .. ':' .. lane
  local limit, known = limit_of(text), redis.call('HMGET', state, 'tat', 'until', 'asked', 'robots_rate', 'slowed', 'times', 'base')
  local by_robots = known[4] and (tonumber(redis.call('HGET', state, 'robots_at') or 0) or 0) > now - STATE_S * 1000 and tonumber(known[4])
  local rate = by_robots and math.min(limit.rate or by_robots, by_robots) or limit.rate -- the slower one counts
  local by_complaints = known[5] and slowed_rate(redis.call('HMGET', state, 'slowed', 'slowed_at', 'slowed_top', 'slowed_return'), now)
  local is_old = limit.only_asked and not by_robots and not by_complaints and (tonumber(known[3] or 0) or 0) < now - PEACE_MS
  return limit, known, spacing(rate, limit.burst, by_complaints, not limit.rate and limit.quotas or nil), is_old
end

-- Number of requests of a lane that were perhaps sent in the second that a Redis that came back older has forgotten.
local function forgotten_by(law)
  return law and math.ceil(1000 / law.apart) + (law.width and law.burst or 0) or 0
end

-- The requests that a lane may be sent now, under all of its limits: {n, times, late, law, limit, ...}: so many requests, at these `times` (ms; nil: at any), and not more than `late` ms
-- later; or nil, the time at which to look at the lane again, and whether to look before, since an operator may end what it waits for.
-- `text`: the limits of the lane as they are stored.
local function allowance(limits, lane, text, now, wanted)
  local state, busy = limits .. ':' .. lane, busy_key(limits, lane)
  local limit, known, law, is_old = obeyed(limits, lane, text, now)
  local till = math.max(tonumber(known[2] or 0) or 0, quiet_until(limit, now) or 0)
  if till > now then return nil, till, true end
  if is_old then forget_lane(limits, lane) end
  local n, at_work = wanted, 0
  if limit.concurrency then
    at_work = redis.call('ZCARD', busy)
    if at_work + n > limit.concurrency then -- some may be of processes that are gone
      redis.call('ZREMRANGEBYSCORE', busy, '-inf', now)
      at_work = redis.call('ZCARD', busy)
    end
    n = math.min(n, limit.concurrency - at_work)
    if n <= 0 then return nil, now + 20 end
  end
  local older = came_back_older(limits)
  local by_quotas, again = allowed_by_quotas(limit, state, now, older, forgotten_by(law))
  if by_quotas <= 0 then return nil, again, true end
  n = math.min(n, by_quotas)
  local allowed = { n = n, limit = limit, at_work = at_work, law = law, late = law and law.late }
  if not law then return allowed end
  local at = older and older + (law.window or not law.width and law.burst * law.apart or 0) or now
  if at > now and older <= now then return nil, at, true end
  allowed.tat, allowed.base = known[1], known[7]
  allowed.times, allowed.turn, at, allowed.log = sending_times(law, { known[1], known[6] }, now, n)
  if #allowed.times == 0 then return nil, at, true end
  allowed.n = #allowed.times
  return allowed
end

-- Crawls take turns at a lane: who waited longest comes first, and has one of the places and times that are free at its exchange, or more. A crawl that did not
-- ask for `turns.lasts_ms` has none, that is longer than between two exchanges of a process that waits for a lane. One table: a script has at most 200 locals.
local turns = { lasts_ms = 250 }

-- Returns true where it is the turn of another one than `crawl`, which asks now.
function turns.waits(limits, lane, crawl, now)
  local key, own, first = limits .. ':' .. lane .. ':turns', now, now
  local known = redis.call('HGETALL', key)
  for place = 1, #known, 2 do
    local since, asked = string.match(known[place + 1], '^(%d+) (%d+)$')
    local is_waiting = since and now - tonumber(asked) >= 0 and now - tonumber(asked) <= turns.lasts_ms
    if is_waiting and known[place] == crawl then
      own = tonumber(since)
    elseif is_waiting then
      first = math.min(first, tonumber(since))
    else
      redis.call('HDEL', key, known[place])
    end
  end
  redis.call('HSET', key, crawl, own .. ' ' .. now)
  redis.call('PEXPIRE', key, 10 * turns.lasts_ms)
  return first < own
end

-- A crawl had its turn. `wants`: it would take more.
function turns.take(limits, lane, crawl, wants, now)
  local key = limits .. ':' .. lane .. ':turns'
  if wants then
    redis.call('HSET', key, crawl, now .. ' ' .. now)
  else
    redis.call('HDEL', key, crawl)
  end
end

-- So many of what `allowed` (see `allowance`) has allowed are sent; `names` stand for them among those at work.
local function spend(limits, lane, allowed, taken, names, now)
  local state, busy, limit = limits .. ':' .. lane, busy_key(limits, lane), allowed.limit
  if taken == 0 then return end
  local lasts = allowed.law and take_times(state, allowed, taken)
  count_quotas(limit, state, allowed.times, taken)
  if not lasts then redis.call('EXPIRE', state, STATE_S) end
  if not limit.concurrency then return end
  local marks, till = {}, string.format('%.0f', now + FORGOTTEN_MS)
  for n, name in ipairs(names) do marks[2 * n - 1], marks[2 * n] = till, name end
  call_with_many('ZADD', busy, marks)
  if not lasts or allowed.at_work == 0 then redis.call('EXPIRE', busy, STATE_S) end -- one that was empty was gone
end

-- What `quota`, a lane that counts the requests of others, too, allows of what the lane of a request has allowed: both at the times of that, where it has some.
-- Changes `allowed` and returns the quota's own part; or nil, the time at which to look again, and whether to look before.
local function quota_part(limits, quota, crawl, allowed, now)
  local waits = turns.waits(limits, quota, crawl, now)
  local part, again, may_end = allowance(limits, quota, redis.pcall('HGET', limits, quota), now, allowed.n)
  if not part or waits then return nil, again or now, may_end end
  allowed.n, allowed.late = part.n, math.min(allowed.late or math.huge, part.late or math.huge)
  if allowed.late == math.huge then allowed.late = nil end
  allowed.times = allowed.times or part.times
  part.times = part.times and allowed.times
  return part
end

-- Up to `wanted` requests of one lane that may be sent before now + AHEAD_MS: calls `lease` with score, member, and where there is a law of times the time to send it, and by how much that may be missed; what it
-- refuses (nil) is not counted;
-- returns the time at which to look at the lane again, in how many ms its quiet hours begin, and whether the lane is known to be empty.
local function lease_of_lane(ready, limits, lane, text, now, wanted, lease, quota)
  local waits = turns.waits(limits, lane, ready, now)
  local allowed, again, may_end = allowance(limits, lane, text, now, wanted)
  if not allowed then return may_end and math.min(again, now + LONGEST_LOOK_MS) or again end
  if waits then return now end
  local part
  if quota and quota ~= lane then
    part, again, may_end = quota_part(limits, quota, ready, allowed, now)
    if not part then return may_end and math.min(again, now + LONGEST_LOOK_MS) or again end
  end
  local popped, names = redis.call('ZPOPMIN', lane_key(ready, lane), allowed.n), {}
  for i = 1, #popped, 2 do
    names[#names + 1] = lease(popped[i + 1], popped[i], allowed.times and allowed.times[#names + 1], allowed.late)
  end
  spend(limits, lane, allowed, #names, names, now)
  if #popped > 0 then turns.take(limits, lane, ready, #names < wanted, now) end
  if part then
    spend(limits, quota, part, #names, names, now)
    if #popped > 0 then turns.take(limits, quota, ready, #names < wanted, now) end
  end
  return now, closes_in(allowed.limit, now), #popped / 2 < allowed.n and #names == #popped / 2
end

-- The number of requests of each of these lanes at one turn, by its weight, the sum, and the limits of each as they are stored.
local function weights_of(limits, lanes)
  local known, weights, sum = #lanes > 0 and redis.pcall('HMGET', limits, unpack(lanes)) or {}, {}, 0
  for i, lane in ipairs(lanes) do
    weights[i] = lane == LATER and 0 or limit_of(known[i]).weight
    sum = sum + weights[i]
  end
  return weights, math.max(1, sum), known
end

-- Up to `wanted` requests of the lanes that are due, those that waited longest first, but not of those in `full`; a lane that is empty then is removed. `quota`: a lane whose limits
-- count them all. Returns lanes
-- that have quiet hours and in how many ms those begin.
local function lease_lanes(ready, limits, now, wanted, full, lease, quota)
  local closing = {}
  local lanes = lanes_of(ready)
  local due = redis.call('ZRANGEBYSCORE', lanes, '-inf', now + AHEAD_MS, 'LIMIT', 0, MOST_LANES)
  local weights, sum, texts = weights_of(limits, due)
  local each, looks, lane, given = math.max(1, math.floor(wanted / sum)), {}, nil, 0
  local function lease_it(score, member, at, late)
    given = given + 1
    return lease(lane, score, member, at, late)
  end
  for i = 1, #due do
    lane, given = due[i], 0
    if lane == LATER then
      wake_later(ready, now)
    elseif wanted > 0 and not full[lane] then
      local again, closes, is_empty = lease_of_lane(ready, limits, lane, texts[i], now, math.min(weights[i] * each, wanted), lease_it, quota)
      wanted = wanted - given
      if closes and given > 0 then closing[#closing + 1], closing[#closing + 2] = lane, math.floor(closes) end
      if is_empty or redis.call('EXISTS', lane_key(ready, lane)) == 0 then
        redis.call('ZREM', lanes, lane)
      else
        looks[#looks + 1], looks[#looks + 2] = math.max(again, now), lane
      end
    end
  end
  call_with_many('ZADD', lanes, looks)
  return closing
end
