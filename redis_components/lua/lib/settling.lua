-- The end of one lease. Needs lib/ready_requests, lib/leases, lib/lanes, lib/sending, lib/tasks and lib/tasks_by_id, and the key `limits`.

-- Take a lease from its owner: kind, score, member and key; nothing when it is not the owner's any more.
local function end_lease(leases, counters, id)
  local value = redis.call('HGET', leases, id)
  if not value then return nil end
  local kind, score, member, key = lease_parts(value)
  if kind == FOREIGN then return nil end
  redis.call('HDEL', leases, id)
  redis.call('HINCRBY', counters, lease_counter(kind), -1)
  if kind == REQUEST and key then leave_lane(limits, key, leases .. '|' .. id) end
  return kind, score, member, key
end

-- c: done. Each of these three returns false when the lease was lost; nothing else happens then.
local function ack(leases, counters, start_deaths, fed, id)
  local kind, _, member, key = end_lease(leases, counters, id)
  if kind == REQUEST then
    redis.call('HINCRBY', counters, 'acked', 1)
  elseif kind then
    forget_deaths(start_deaths, member)
    forget_id(fed, kind, member, key)
  end
  return kind ~= nil
end

-- d: back to its place, unharmed.
local function release(leases, counters, ready, start_tasks, fed, id)
  local kind, score, member, key = end_lease(leases, counters, id)
  if kind then give_back(fed, ready, start_tasks, kind, score, member, key) end
  return kind ~= nil
end

-- A request of a lane is not sent, however its lease ends: another one may be at its time, also of those that `quota` counts.
local function leave_unsent(leases, ready, id, now, quota)
  local kind, score, member, key, at = lease_parts(redis.call('HGET', leases, id) or '')
  if kind ~= REQUEST or not key or not at then return end
  free_time(limits, key, at)
  if quota and quota ~= key then free_time(limits, quota, at) end
  look_soon(ready, key, now)
  redis.call('HSET', leases, id, lease_value(kind, score, member, key)) -- it is reported once
end

-- f: given up, with the reason.
local function give_up(leases, counters, start_deaths, dead, fed, id, reason)
  local kind, score, member, key = end_lease(leases, counters, id)
  if kind then bury(dead, fed.now, reason, kind, score, member, key) end
  if kind and kind ~= REQUEST then
    forget_deaths(start_deaths, member)
    forget_id(fed, kind, member, key)
  end
  return kind ~= nil
end
