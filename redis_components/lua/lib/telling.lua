-- A message's news of leases, as far as they are its owner's. `x` is the exchange (lib/storing); `reply.lost` counts the others. Needs lib/many, lib/leases, lib/settling,
-- lib/reclaim_leases and lib/parking.

local function count_lost(x, was_ours)
  if not was_ours then x.reply.lost = (x.reply.lost or 0) + 1 end
end

-- c. Requests, which are most, at once; those of lanes are not at work any more.
local function ack_told(x, limits)
  local acks, plain, by_lane = x.message.acks, {}, {}
  for from = 1, #acks, 1000 do
    for place, value in ipairs(redis.call('HMGET', x.leases, unpack(acks, from, math.min(from + 999, #acks)))) do
      local id = acks[from + place - 1]
      local lane = value and request_lane(value)
      if lane then plain[#plain + 1] = id end
      if not lane then
        count_lost(x, ack(x.leases, x.counters, x.start_deaths, x.fed, id))
      elseif lane ~= '' then
        local names = by_lane[lane] or {}
        names[#names + 1], by_lane[lane] = x.leases .. '|' .. id, names
      end
    end
  end
  if #plain == 0 then return end
  local ended = call_with_many('HDEL', x.leases, plain)
  redis.call('HINCRBY', x.counters, 'leased', -ended)
  redis.call('HINCRBY', x.counters, 'acked', ended)
  for _ = ended + 1, #plain do count_lost(x, false) end
  for lane, names in pairs(by_lane) do call_with_many('ZREM', busy_key(limits, lane), names) end
end

-- d
local function release_told(x)
  for _, id in ipairs(x.message.releases) do count_lost(x, release(x.leases, x.counters, x.ready, x.start_tasks, x.fed, id)) end
end

-- d, into the lane of a request that was leased from READY, or from another lane: its site has limits.
local function shelve_told(x)
  for _, one in ipairs(x.message.shelves or {}) do
    local kind, score, member = end_lease(x.leases, x.counters, one[1])
    if kind == REQUEST then to_lane(x.ready, one[2], score, member) end
    count_lost(x, kind ~= nil)
  end
end

-- Sites have complained, or asked to be left alone for a time. `owners` processes send what the teller does, so far as it knows.
local function keep_off_told(x, limits, owners)
  for _, one in ipairs(x.message.waits or {}) do
    if one[2] >= 0 then keep_off(limits, one[1], one[2], x.now) end
    if one[3] > 0 then slow_down(limits, one[1], one[3] * math.max(1, redis.call('ZCARD', owners)), x.now, one[4]) end
  end
end

-- f; or e, of one lease that its crawler gives back with an attempt counted.
local function bury_told(x)
  for _, burial in ipairs(x.message.burials) do
    local id, reason, again = unpack(burial)
    if again then
      local kind, score, member, key = end_lease(x.leases, x.counters, id)
      if kind then try_again(x.ready, x.start_tasks, x.start_deaths, x.dead, x.fed, x.message.max_attempts, reason, kind, score, member, key) end
      count_lost(x, kind ~= nil)
    else
      count_lost(x, give_up(x.leases, x.counters, x.start_deaths, x.dead, x.fed, id, reason))
    end
  end
end

-- Requests and start tasks of held sites go into the lists of their lots, and come back from one that is not held any more.
local function park_told(x, lots, lot_keys)
  local message = x.message
  for _, one in ipairs(message.parks or {}) do
    local id, lot = one[1], one[2]
    if x.stale then -- the site may not be held any more
      count_lost(x, release(x.leases, x.counters, x.ready, x.start_tasks, x.fed, id))
    else
      count_lost(x, park(x.leases, x.counters, lot_keys[lot], id))
    end
  end
  if message.unpark and not x.stale and not x.full then
    unpark(lot_keys[1], lots[1], x.counters, x.ready, x.start_tasks, x.dead, x.fed, 500)
  end
  for place, lot in ipairs(lots) do store_lot(x.parked, lot_keys[place], lot) end
end
