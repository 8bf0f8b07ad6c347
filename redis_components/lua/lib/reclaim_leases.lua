-- Leases of an owner that is gone. Needs lib/ready_requests, lib/leases, lib/lanes, lib/tasks and lib/tasks_by_id, and the key `limits`.

-- True if Trawl may have written it: a name is UTF-8 and not empty.
local function is_name(owner)
  for _, wrong in ipairs({ '\224[\128-\159]', '\237[\160-\191]', '\240[\128-\143]', '\244[\144-\191]' }) do
    if string.find(owner, wrong) then return false end
  end
  for _, character in ipairs({
    '[\194-\223][\128-\191]', '[\224-\239][\128-\191][\128-\191]', '[\240-\244][\128-\191][\128-\191][\128-\191]',
  }) do
    owner = string.gsub(owner, character, '?')
  end
  return owner ~= '' and not string.find(owner, '[\128-\255]')
end

-- The leases of one owner, those that it started first at the front: ids are `<exchange>.<n>`, and leases are started in that order, except that
-- those in `overtaken` (ids with a comma after each) were still waiting in its buffer while later ones were started.
local function leases_as_started(leases, overtaken)
  local flat, held, waiting = redis.call('HGETALL', leases), {}, {}
  for id in string.gmatch(overtaken, '[^,]+') do waiting[id] = 1 end
  for i = 1, #flat, 2 do
    local exchange, place = string.match(flat[i], '^(%d+)%.(%d+)')
    held[#held + 1] = {
      late = waiting[flat[i]] or 0, exchange = tonumber(exchange or 0), place = tonumber(place or 0), value = flat[i + 1], id = flat[i],
    }
  end
  table.sort(held, function(a, b)
    if a.late ~= b.late then return a.late < b.late end
    if a.exchange ~= b.exchange then return a.exchange < b.exchange end
    return a.place < b.place
  end)
  return held
end

-- e, f: what was at work without success goes back to its place, or to DEAD with its last attempt.
local function back_or_dead(ready, start_tasks, start_deaths, dead, fed, is_last, reason, kind, score, member, key)
  if not is_last then return give_back(fed, ready, start_tasks, kind, score, member, key) end
  bury(dead, fed.now, reason, kind, score, member, key)
  if kind ~= REQUEST then
    forget_deaths(start_deaths, member)
    forget_id(fed, kind, member, key)
  end
end

-- e, of one lease: its crawler lives and counts an attempt itself, because of `why`.
local function try_again(ready, start_tasks, start_deaths, dead, fed, max_attempts, why, kind, score, member, key)
  local attempts
  if kind == REQUEST then
    attempts = attempts_of(member) + 1
    member = with_attempts(member, attempts)
  else
    attempts = task_deaths(start_deaths, member)
  end
  local reason = 'attempts spent: ' .. attempts .. ', the last one: ' .. why
  back_or_dead(ready, start_tasks, start_deaths, dead, fed, attempts >= max_attempts, reason, kind, score, member, key)
end

-- d, e: give back every lease of one owner. Where it died, that counts as an attempt for what it was working on: its `started` first requests
-- and start tasks. What has spent its attempts goes to DEAD (f). Bounded by what one process may hold. Returns how many there were, and the lanes and times of those
-- that were to be sent after `ended` (ms), when the owner was seen to be gone.
local function give_back_all(leases, overtaken, ready, start_tasks, start_deaths, dead, counters, fed, started, max_attempts, ended, why)
  local last = why and why ~= '' and ', the last time it ' .. why or ''
  local ours, ahead, moved = {}, {}, { leased = 0, leased_tasks = 0 }
  for _, lease in ipairs(leases_as_started(leases, overtaken)) do
    lease.kind, lease.score, lease.member, lease.key, lease.at = lease_parts(lease.value)
    if lease.kind == FOREIGN then
      bury(dead, fed.now, 'not a lease that Trawl wrote', FOREIGN, '', lease.member)
    else
      local counter = lease_counter(lease.kind)
      moved[counter] = moved[counter] + 1
      lease.started = moved[counter] <= started
      ours[#ours + 1] = lease
    end
  end
  for i = #ours, 1, -1 do -- backwards: each task goes to the head of its list
    local lease, deaths = ours[i], 0
    if lease.kind == REQUEST then
      if lease.key then leave_lane(limits, lease.key, leases .. '|' .. lease.id) end
      if lease.key and lease.at and lease.at > ended then ahead[#ahead + 1] = { lease.key, lease.at } end
      if lease.started then lease.member = with_attempts(lease.member, attempts_of(lease.member) + 1) end
      deaths = attempts_of(lease.member)
    elseif lease.started then
      deaths = task_deaths(start_deaths, lease.member)
    end
    local reason = 'attempts spent: its crawler died ' .. deaths .. ' times' .. last
    back_or_dead(ready, start_tasks, start_deaths, dead, fed, deaths >= max_attempts, reason, lease.kind, lease.score, lease.member, lease.key)
  end
  redis.call('DEL', leases)
  for counter, n in pairs(moved) do
    if n > 0 then redis.call('HINCRBY', counters, counter, -n) end
  end
  return moved.leased + moved.leased_tasks, ahead
end
