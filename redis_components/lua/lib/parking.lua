-- Requests and start tasks of a site that is held: out of the way, in a list for each site and kind (a lot), each as its lease was. Needs lib/leases,
-- lib/tasks_by_id and lib/settling.
local PARKED_COUNTER = { leased = 'parked', leased_tasks = 'parked_tasks' }

-- Out of the owner's hands into a lot; no attempt is counted. False when the lease was lost.
local function park(leases, counters, lot_key, id)
  local kind, score, member, key = end_lease(leases, counters, id)
  if not kind then return false end
  redis.call('RPUSH', lot_key, lease_value(kind, score, member, key))
  redis.call('HINCRBY', counters, PARKED_COUNTER[lease_counter(kind)], 1)
  return true
end

-- Up to `most` entries of a lot back to their place. Start tasks go to the head of their list, the newest first: when all are back, they are in their old
-- order. Requests know their place.
local function unpark(lot_key, lot, counters, ready, start_tasks, dead, fed, most)
  local back = { leased = 0, leased_tasks = 0 }
  local pop = string.sub(lot, 1, 6) == 'tasks:' and 'RPOP' or 'LPOP'
  for _, value in ipairs(redis.call(pop, lot_key, most) or {}) do
    local kind, score, member, key = lease_parts(value)
    if kind == FOREIGN then
      bury(dead, fed.now, 'not a parked request that Trawl wrote', FOREIGN, '', member)
    else
      give_back(fed, ready, start_tasks, kind, score, member, key)
      back[lease_counter(kind)] = back[lease_counter(kind)] + 1
    end
  end
  for counter, n in pairs(back) do
    if n > 0 then redis.call('HINCRBY', counters, PARKED_COUNTER[counter], -n) end
  end
end

-- Store in the hash of lots how many entries this one has.
local function store_lot(parked, lot_key, lot)
  local left = redis.call('LLEN', lot_key)
  if left > 0 then redis.call('HSET', parked, lot, left) else redis.call('HDEL', parked, lot) end
end
