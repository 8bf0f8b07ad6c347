-- b: the next leases of an owner. `x` is the exchange (lib/storing), `x.made` how many were leased in it by counter, `x.leased` their ids and values. Needs lib/many, lib/ready_requests, lib/leases, lib/lanes,
-- lib/tasks, lib/tasks_by_id and lib/item_memory.
local MOST_WITHHELD = 200

local function lease(x, kind, score, member, key, at)
  local made = x.made
  local id = x.number .. '.' .. (made.leased + made.leased_tasks + 1)
  local n = #x.leased
  x.leased[n + 1], x.leased[n + 2] = id, lease_value(kind, score, member, key, at)
  tell_lease(x.reply.leases, x.reply.tasks, id, kind, score, member, key)
  made[lease_counter(kind)] = made[lease_counter(kind)] + 1
  return id
end

-- Leased requests are the owner's.
local function keep_leases(x)
  call_with_many('HSET', x.leases, x.leased)
  for counter, n in pairs(x.made) do
    if n > 0 then redis.call('HINCRBY', x.counters, counter, n) end
  end
end

-- A request that was at work in several deaths is tried apart from others of the kind, one for each process: so only the guilty one is there each time. True: not this one now.
local function is_withheld(x, member)
  local suspect = attempts_of(member) >= x.message.suspect_from
  if suspect and x.trying then return true end
  x.trying = x.trying or suspect
  return false
end

-- Requests that a queue class of the user's has chosen; what is not READY any more is left out.
local function lease_claims(x)
  for _, hex in ipairs(x.message.claims) do
    local member = member_of(x.ready, hex)
    if member and #member >= 9 and not is_withheld(x, member) then
      redis.call('ZREM', x.ready, member)
      lease(x, REQUEST, '0', member)
    end
  end
end

local function lease_requests(x)
  local message, withheld, round, popped = x.message, {}, 0, nil
  repeat -- again where some were withheld, for a bounded time
    round = round + 1
    local wanted = x.stale and 0 or message.want - x.made.leased
    popped = wanted > 0 and redis.call('ZPOPMIN', x.ready, wanted) or {}
    for i = 1, #popped, 2 do
      local member, score = popped[i], popped[i + 1]
      if #member < 9 or (string.byte(member) ~= 0 and message.order ~= 'advised') then -- a late one of scrapy-redis stays whole
        bury(x.dead, x.now, 'not a request that Trawl wrote: no order and attempts before the payload', FOREIGN, score, member)
      elseif is_withheld(x, member) then
        withheld[#withheld + 1] = { score, member }
      else
        lease(x, REQUEST, score, member)
      end
    end
  until #popped == 0 or #withheld >= MOST_WITHHELD or round >= MOST_WITHHELD
  for _, one in ipairs(withheld) do redis.call('ZADD', x.ready, one[1], one[2]) end
  if #withheld > 0 then x.reply.withheld = #withheld end
end

-- Requests of lanes, each with the time (ms from now, -1: any) at which it is to be sent, and how much later it may be (ms, -1: any). A rate that only
-- complaints of the site have set promises it nothing, and a process that is late for want of a processor would be later for giving requests back.
local function lease_paced(x, limits)
  if x.stale or count_lanes(x.ready) == 0 then return end
  local paced, full = {}, {}
  for _, lane in ipairs(x.message.full or {}) do full[lane] = true end
  x.reply.closing = lease_lanes(x.ready, limits, x.now, x.message.want_paced or 0, full, function(lane, score, member, at, late)
    if is_withheld(x, member) then
      to_lane(x.ready, lane, score, member)
      return nil
    end
    local id, n = lease(x, REQUEST, score, member, lane, at), #paced -- a time in ms has 13 digits, of 14 that Lua writes
    paced[n + 1], paced[n + 2], paced[n + 3], paced[n + 4] = id, lane, at and at - x.now or -1, late or -1
    return x.leases .. '|' .. id
  end, x.message.quota)
  x.reply.paced = paced
end

-- Items wait, or were refused, up to a bound that the message sets: then nothing is leased until their consumer has taken some.
local function is_backed_up(x)
  local most, most_bytes = x.message.max_items or 0, x.message.max_item_bytes or 0
  local waiting = most > 0 and redis.call('LLEN', x.items) + redis.call('LLEN', x.bad_items) or 0
  if most > 0 then x.reply.items = waiting end
  return (most > 0 and waiting >= most) or (most_bytes > 0 and bytes_of(x.items, x.bad_items) >= most_bytes)
end
