-- A lease is a field of the owner's hash: id -> kind score '|' member. Needs lib/ready_requests, lib/score and lib/lanes.
--   kind 'r'            a request; member as in lib/ready_requests. Where it has a lane (lib/lanes), '@' and the lane, '@' and the time to send it (ms) follow the score
--   kind 'l', 's', 'z'  a start task from a list, set or zset; member = the task as its producer wrote it. Before it stands the key that it came from, as
--                       <bytes>'|'<key>: the process that gives it back may read other keys
--   kind 'f'            foreign: not written by Trawl, nor counted; it ends among the dead
local REQUEST, FOREIGN = 'r', 'f'

local function lease_value(kind, score, member, key, at)
  if kind == REQUEST then return kind .. score .. (key and key ~= '' and '@' .. key .. '@' .. (at or '') or '') .. '|' .. member end
  return kind .. score .. '|' .. (key and #key .. '|' .. key or '') .. member
end

-- Kind, score, member, the key of a start task or the lane of a request, and the time to send that (ms).
local function lease_parts(value)
  local kind, score, member = string.match(value, '^([rlsz])([^|]*)|(.*)$')
  local key, at
  if kind == REQUEST and string.find(score, '@', 1, true) then
    score, key, at = string.match(score, '^([^@]*)@([^@]*)@(%d*)$')
    score = score or ''
  end
  if kind == 'z' or kind == REQUEST then score = zset_score(score) end
  if kind and kind ~= REQUEST then
    local size, rest = string.match(member, '^(%d+)|(.*)$')
    if not size or tonumber(size) < 1 or tonumber(size) > #rest then return FOREIGN, '', value end
    key, member = string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1)
  end
  if not kind or not score or (kind == REQUEST and #member < 9) then return FOREIGN, '', value end
  return kind, score, member, key, tonumber(at)
end

-- The lane of a request's lease, '' for none, where that is seen at once; nil of other leases, which `lease_parts` has to read.
local function request_lane(value)
  local _, last = string.find(value, '^r%-?%d+')
  local mark = last and string.byte(value, last + 1)
  if mark == 64 then return string.match(value, '^([^@|]*)@%d*|.........', last + 2) end
  return mark == 124 and #value > last + 9 and '' or nil
end

-- The counter that a lease of this kind is counted in.
local function lease_counter(kind)
  return kind == REQUEST and 'leased' or 'leased_tasks'
end

-- The start key and the data of a task that waited for the turn of its site (lib/turns: key ':turns', member = site, NUL, order, data); nothing of another one.
local function out_of_turn(kind, key, member)
  if kind ~= 'z' or not key or string.sub(key, -6) ~= ':turns' then return nil end
  return string.sub(key, 1, -7), string.match(member, '^[^%z]*%z........(.*)$') or member
end

-- Add what is leased to the answer: id, score, order and attempts, payload of a request; id, data of a start task.
local function tell_lease(out_leases, out_tasks, id, kind, score, member, key)
  if kind == REQUEST then
    local n = #out_leases
    out_leases[n + 1], out_leases[n + 2], out_leases[n + 3], out_leases[n + 4] = id, score, string.sub(member, 1, 9), payload_of(member)
  else
    local n = #out_tasks
    local _, data = out_of_turn(kind, key, member)
    out_tasks[n + 1], out_tasks[n + 2] = id, data or member
  end
end

-- Put what was leased back where it came from; its order number (or the list's head) gives it its old place. The key of a start task is one that this caller
-- declared, unless its crawler read other keys; where that one cannot be written (another type by now, another slot), `start_tasks` gets the task.
local function put_back(ready, start_tasks, kind, score, member, key)
  if kind == REQUEST then
    if key and key ~= '' then to_lane(ready, key, score, member) else redis.call('ZADD', ready, score, member) end
    return
  end
  local held = redis.pcall('TYPE', key)['ok']
  if held ~= 'none' and held ~= 'list' and held ~= 'set' and held ~= 'zset' then
    key, held = start_tasks, redis.call('TYPE', start_tasks)['ok']
  end
  if held == 'zset' or (held == 'none' and kind == 'z') then
    redis.call('ZADD', key, kind == 'z' and score or 0, member)
  elseif held == 'set' or (held == 'none' and kind == 's') then
    redis.call('SADD', key, member)
  else
    redis.call('LPUSH', key, member)
  end
end

-- DEAD: kept with its reason until it is replayed or purged.
local function bury(dead, now, reason, kind, score, member, key)
  local payload = kind == REQUEST and payload_of(member) or member
  local home, data = out_of_turn(kind, key, member)
  if home then kind, score, key, payload = 'l', '', home, data end
  redis.call('RPUSH', dead, cjson.encode({ at_ms = now, kind = kind, reason = reason, score = score, key = kind ~= REQUEST and key or nil }) .. '\n' .. payload)
end
