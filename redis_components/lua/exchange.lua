-- One exchange of a crawler process with the frontier: everything it has to tell, and its next leases, in one atomic step.
-- The states and letters (a enqueue, b lease, c ack, d release, e reclaim, f give up) are those of docs/architecture.md.
-- Keys of other processes or services that it touches are passed by the caller too, so that every key is declared.
--
-- KEYS[1] ready        (zset)   READY requests: score = -priority, member = order, attempts, payload
-- KEYS[2] seen         (set)    fingerprints of requests ever stored
-- KEYS[3] leases       (hash)   this owner's leases
-- KEYS[4] owners       (zset)   owners, score = time at which each counts as dead, in ms
-- KEYS[5] numbers      (hash)   owner -> number of its last exchange, '|', the duplicates found in it
-- KEYS[6] counters     (hash)   layout version, order number, leases out, totals
-- KEYS[7] dead         (list)   DEAD requests and start tasks with their reasons
-- KEYS[8] start_tasks  (list, set or zset)  start tasks of this spider
-- KEYS[9] items        (list)   item stream
-- KEYS[10] stats       (hash)   stats over all processes
-- KEYS[11] next_tasks  (list)   start tasks of the service that this one feeds
-- KEYS[12] next_tokens (hash)   task id -> last change token, of the service that this one feeds
-- KEYS[13] dead_leases (hash)   leases of the owner named in message.reclaim
-- KEYS[14] own_stats   (hash)   stats that are this owner's own
-- KEYS[15] own_gone   (string) last number of this owner, if it was taken for dead
-- KEYS[16] dead_gone  (string) the same of the owner named in message.reclaim
-- ARGV[1] message      (msgpack map)  see redis_components/exchange.py, class Message
-- ARGV[2] blobs        (binary)       end to end, for each of message.requests its fingerprint ('' = no filter) and payload, for each of message.tasks
--                      its data, then the items; apart from the message because Redis's cmsgpack does not know the binary type
-- Returns: {outcome, leases {id, payload, ...}, tasks {id, data, ...}, duplicates {place, ...}, ready, leased, leased_tasks, waiting, dead owner, acks lost (fenced: number of the last exchange applied)};
--          outcome is 'applied', 'repeated' (was applied before, same answer), 'fenced' (nothing applied: this owner is not known any more) or 'layout'
-- Retry: safe; a message is applied at most once for each owner and number
local ready, seen, leases, owners, numbers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local counters, dead, start_tasks, items, stats = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local next_tasks, next_tokens, dead_leases, own_stats = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local own_gone, dead_gone = KEYS[15], KEYS[16]
local message, blobs = cmsgpack.unpack(ARGV[1]), ARGV[2]
local LAYOUT = 1
local DAY_S = 86400

-- include: clock
-- include: leases

local now = now_ms()
local owner, number = message.owner, message.number

local sizes, read, offset = message.sizes, 0, 0
local function next_blob()
  read = read + 1
  offset = offset + sizes[read]
  return string.sub(blobs, offset - sizes[read] + 1, offset)
end

local function take_tasks(wanted)
  local kind = redis.call('TYPE', start_tasks)['ok']
  local taken = {} -- {kind, score, data}
  if wanted == 0 or kind == 'none' then return taken end
  if kind == 'list' then
    for _, data in ipairs(redis.call('LPOP', start_tasks, wanted) or {}) do taken[#taken + 1] = { 'l', '', data } end
  elseif kind == 'set' then
    for _, data in ipairs(redis.call('SPOP', start_tasks, wanted)) do taken[#taken + 1] = { 's', '', data } end
  else
    local popped = redis.call('ZPOPMAX', start_tasks, wanted)
    for i = 1, #popped, 2 do taken[#taken + 1] = { 'z', popped[i + 1], popped[i] } end
  end
  return taken
end

local function count_tasks()
  local kind = redis.call('TYPE', start_tasks)['ok']
  if kind == 'none' then return 0 end
  return redis.call(kind == 'list' and 'LLEN' or kind == 'set' and 'SCARD' or 'ZCARD', start_tasks)
end

-- Everything is checked before anything is written: Redis does not roll a script back. Reading each key once finds a foreign type.
local layout = tonumber(redis.call('HGET', counters, 'layout') or LAYOUT)
if layout ~= LAYOUT then return { 'layout', {}, {}, {}, layout, 0, 0, 0, '', 0 } end
redis.call('ZCARD', ready) redis.call('SCARD', seen) redis.call('HLEN', leases) redis.call('LLEN', dead) redis.call('LLEN', items)
redis.call('HLEN', stats) redis.call('HLEN', own_stats) redis.call('LLEN', next_tasks) redis.call('HLEN', next_tokens) redis.call('HLEN', dead_leases) redis.call('ZCARD', owners)
count_tasks()

local known = redis.call('HGET', numbers, owner) or ''
local bar = string.find(known, '|', 1, true) or 1
local had, duplicates = string.sub(known, 1, bar - 1), {}
local gone = redis.call('GET', own_gone)

if gone or (had ~= number and had ~= message.previous) then
  -- Redis came back with an older state than the one that answered us last, or we were taken for dead. Apply nothing: an ack in this message could outlive
  -- children that were lost. Our leases go back; the process forgets them and replays its journal under a new name.
  give_back_all(leases, ready, start_tasks, dead, counters, now, 0, 256) -- nobody died
  redis.call('ZREM', owners, owner)
  redis.call('HDEL', numbers, owner)
  redis.call('DEL', own_gone)
  return { 'fenced', {}, {}, {}, redis.call('ZCARD', ready), 0, 0, 0, '', tonumber(gone or had) or 0 }
end

local out_leases, out_tasks, lost = {}, {}, 0
local outcome = 'applied'
redis.call('ZREM', owners, '') -- a first write that is always allowed: after it Redis lets the rest through while it is out of memory
redis.call('ZADD', owners, now + message.ttl_ms, owner)

if had == number then
  -- Applied before, only the answer was lost: the same answer again.
  outcome = 'repeated'
  for place in string.gmatch(string.sub(known, bar + 1), '%d+') do duplicates[#duplicates + 1] = tonumber(place) end
  local n = 1
  while true do
    local id = number .. '.' .. n
    local value = redis.call('HGET', leases, id)
    if not value then break end
    local kind, _, member = lease_parts(value)
    local out = kind == REQUEST and out_leases or out_tasks
    out[#out + 1] = id
    out[#out + 1] = kind == REQUEST and string.sub(member, 10) or member
    n = n + 1
  end
else
  redis.call('HSETNX', counters, 'layout', LAYOUT)

  -- a: a new request is stored in the same step in which its fingerprint is set
  local order = 0
  if #message.requests > 0 then order = redis.call('HINCRBY', counters, 'order', #message.requests) - #message.requests end
  for place, score in ipairs(message.requests) do
    local fingerprint, payload = next_blob(), next_blob()
    if fingerprint == '' or redis.call('SADD', seen, fingerprint) == 1 then
      local rank = order + place
      if message.order == 'lifo' then rank = 2 ^ 52 - rank
      elseif message.order == 'random' then rank = tonumber(string.sub(redis.sha1hex(tostring(rank)), 1, 12), 16) end
      redis.call('ZADD', ready, score, struct.pack('>I8', rank) .. '\0' .. payload)
    else
      duplicates[#duplicates + 1] = place
    end
  end

  -- start tasks for the next service, only where the change token differs from the last one
  for _, task in ipairs(message.tasks) do
    local id, token, data = task[1], task[2], next_blob()
    if redis.call('HGET', next_tokens, id) ~= token then
      redis.call('HSET', next_tokens, id, token)
      redis.call('RPUSH', next_tasks, data)
    end
  end

  for _ = 1, message.items do redis.call('RPUSH', items, next_blob()) end

  -- c, d and the burying part of f: a lease that is not ours any more is counted as lost, and nothing else happens
  local function settle(id, action, reason)
    local value = redis.call('HGET', leases, id)
    if not value then
      lost = lost + 1
      return
    end
    local kind, score, member = lease_parts(value)
    redis.call('HDEL', leases, id)
    redis.call('HINCRBY', counters, lease_counter(kind), -1)
    if action == 'ack' then
      if kind == REQUEST then redis.call('HINCRBY', counters, 'acked', 1) end
    elseif action == 'release' then
      put_back(ready, start_tasks, kind, score, member)
    else
      bury(dead, now, reason, kind, score, member)
    end
  end
  for _, id in ipairs(message.acks) do settle(id, 'ack') end
  for _, id in ipairs(message.releases) do settle(id, 'release') end
  for _, burial in ipairs(message.burials) do settle(burial[1], 'bury', burial[2]) end

  for _, change in ipairs(message.stats) do
    local how, field, value = change[1], change[2], change[3]
    if how == 'add' then
      -- pcall: a field that somebody else filled with text must not stop the crawl
      if type(redis.pcall('HINCRBYFLOAT', stats, field, value)) == 'table' then redis.call('HSET', stats, field, value) end
    elseif how == 'set' then
      redis.call('HSET', own_stats, field, value)
      redis.call('EXPIRE', own_stats, DAY_S)
    else
      local stored = tonumber(redis.call('HGET', stats, field) or nil)
      if not stored or (how == 'max' and tonumber(value) > stored) or (how == 'min' and tonumber(value) < stored) then
        redis.call('HSET', stats, field, value)
      end
    end
  end

  -- e: one dead owner for each exchange; the caller learned its name from an earlier answer and passed its key
  if message.reclaim ~= '' then
    local expires = tonumber(redis.call('ZSCORE', owners, message.reclaim) or nil)
    if expires and expires <= now then
      local moved = give_back_all(dead_leases, ready, start_tasks, dead, counters, now, message.concurrency, message.max_attempts)
      redis.call('HINCRBY', counters, 'reclaimed', moved)
      redis.call('ZREM', owners, message.reclaim)
      -- kept: an owner that comes back learns what was applied and replays only the rest
      redis.call('SET', dead_gone, string.match(redis.call('HGET', numbers, message.reclaim) or '', '^%d*'), 'EX', DAY_S)
      redis.call('HDEL', numbers, message.reclaim)
    end
  end

  -- b: the next leases
  local n = 0
  if message.want > 0 then
    local popped = redis.call('ZPOPMIN', ready, message.want)
    for i = 1, #popped, 2 do
      local member, score = popped[i], popped[i + 1]
      if #member < 9 then
        bury(dead, now, 'not a request of ours: no order and attempts before the payload', 'f', score, member)
      else
        n = n + 1
        local id = number .. '.' .. n
        redis.call('HSET', leases, id, lease_value(REQUEST, score, member))
        out_leases[#out_leases + 1] = id
        out_leases[#out_leases + 1] = string.sub(member, 10)
      end
    end
    if n > 0 then redis.call('HINCRBY', counters, 'leased', n) end
  end
  local taken = take_tasks(message.want_tasks)
  for _, task in ipairs(taken) do
    n = n + 1
    local id = number .. '.' .. n
    redis.call('HSET', leases, id, lease_value(task[1], task[2], task[3]))
    out_tasks[#out_tasks + 1] = id
    out_tasks[#out_tasks + 1] = task[3]
  end
  if #taken > 0 then redis.call('HINCRBY', counters, 'leased_tasks', #taken) end

  redis.call('HSET', numbers, owner, number .. '|' .. table.concat(duplicates, ','))
end

if message.bye and redis.call('HLEN', leases) == 0 then
  redis.call('ZREM', owners, owner)
  redis.call('HDEL', numbers, owner)
end

local expired = redis.call('ZRANGEBYSCORE', owners, '-inf', now, 'LIMIT', 0, 1)[1] or ''
local leased = redis.call('HMGET', counters, 'leased', 'leased_tasks')
return { outcome, out_leases, out_tasks, duplicates, redis.call('ZCARD', ready), tonumber(leased[1] or 0), tonumber(leased[2] or 0), count_tasks(), expired, lost }
