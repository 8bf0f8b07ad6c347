-- One exchange of a crawler process with the frontier: everything it has to tell, and its next leases, in one atomic step.
-- The states and letters (a enqueue, b lease, c ack, d release, e reclaim, f give up) are those of docs/architecture.md.
-- Keys of other processes or services that it touches are passed by the caller too, so that every key is declared.
--
-- KEYS[1] ready         (zset)   READY requests: score = -priority, member = order, attempts, payload
-- KEYS[2] seen          (set, hash)  fingerprints of requests ever stored; a hash where message.filter names another dupefilter than the plain set: it keeps
--                       its entries in keys that begin with this one and so are in its slot (lib/filter_state), or it is one of notes (lib/notes)
-- KEYS[3] leases        (hash)   this owner's leases
-- KEYS[4] owners        (zset)   owners, score = time at which each counts as dead, in ms
-- KEYS[5] numbers       (hash)   owner -> number of its last exchange '|' the duplicates found in it '|' leases overtaken in its buffer '|' its concurrency
-- KEYS[6] counters      (hash)   layout version, order number, leases out, totals
-- KEYS[7] dead          (list)   DEAD requests and start tasks with their reasons
-- KEYS[8] start_tasks   (list, set or zset)  start tasks of this spider
-- KEYS[9] start_deaths  (hash)   SHA-1 of a start task -> crawlers that died while they held it
-- KEYS[10] items        (list)   item stream
-- KEYS[11] stats        (hash)   stats over all processes
-- KEYS[12] own_stats    (hash)   stats that are this owner's own
-- KEYS[13] next_tasks   (list)   start tasks of the service that this one feeds
-- KEYS[14] next_tokens  (hash)   task id -> last change token, of the service that this one feeds
-- KEYS[15] own_gone     (string) last number of this owner, if it was taken for dead, was fenced or said good-bye
-- KEYS[16] dead_leases  (hash)   leases of the owner named in message.reclaim
-- KEYS[17] dead_gone    (string) last number of the owner named in message.reclaim
-- KEYS[18] holds        (hash)   what an operator holds, and its version
-- KEYS[19] parked       (hash)   lots of parked requests and start tasks -> how many they hold
-- KEYS[20] more_keys    (any number) message.start_keys further start keys of this spider, the most urgent first (list, set or zset; with message.turn_by the
--                       last half of all start keys are the zsets in which the tasks of the first half wait for their turns); then the lots in message.lots (list); then lists for items, and for start tasks of the service that this one feeds that may wait
-- ARGV[1] message       (msgpack map)  see redis_components/exchange.py, class Message
-- ARGV[2] blobs         (binary)       end to end, for each of message.requests its fingerprint ('' = no filter) and payload, for each of message.tasks
--                       its data, then the items, then those with a key of their own; apart from the message because Redis's cmsgpack does not know the binary type
-- Returns: {outcome, layout version, number of the last exchange applied, leases {id, score, order and attempts, payload, ...}, tasks {id, data, ...},
--          duplicates {place, ...}, ready, withheld, leased, leased_tasks, waiting, dead owner, acks lost, out of memory (0, 1), survives a crash by an append-only file or replicas (0, 1, -1 not asked),
--          time of the last removal from the dupefilter (in ms, '' if long ago), parked, parked start tasks, entries left in the lot to be put back,
--          {} or, where the owner knows another version of what is held and was leased nothing therefore, {{field, value, ...}, {lot, entries, ...}}};
--          outcome is 'applied', 'repeated' (was applied before, same answer), 'fenced' (nothing applied: this owner is not known any more), 'layout', or
--          'filter' (nothing applied: another dupefilter is at that key; its form stands in place of the layout version)
-- Retry: safe; a message is applied at most once for each owner and number
local ready, seen, leases, owners, numbers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local counters, dead, start_tasks, start_deaths, items = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local stats, own_stats, next_tasks, next_tokens = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local own_gone, dead_leases, dead_gone = KEYS[15], KEYS[16], KEYS[17]
local holds, parked = KEYS[18], KEYS[19]
local more_keys = 20
local message, blobs = cmsgpack.unpack(ARGV[1]), ARGV[2]
local LAYOUT = '1'
local GONE_S = 86400
local MOST_WITHHELD = 200
local MOST_UNPARKED = 500
local MEND = '; trawl migrate scrapy-redis imports it if it is of scrapy-redis, else remove it'

-- include: clock
-- include: memory
-- include: score
-- include: ready
-- include: leases
-- include: tasks
-- include: reclaim
-- include: settling
-- include: tokens
-- include: parking
-- include: stats
-- include: filter_form

local now = now_ms()
local owner, number = message.owner, message.number
local reply = {
  layout = LAYOUT, last_applied = 0, leases = {}, tasks = {}, duplicates = {}, ready = 0, withheld = 0, leased = 0, leased_tasks = 0, waiting = 0,
  expired = '', lost = 0, full = 0, survives = -1, forgotten = '', parked = 0, parked_tasks = 0, left = 0, holds = {},
}

local function answer(outcome)
  return {
    outcome, reply.layout, reply.last_applied, reply.leases, reply.tasks, reply.duplicates, reply.ready, reply.withheld, reply.leased,
    reply.leased_tasks, reply.waiting, reply.expired, reply.lost, reply.full, reply.survives, reply.forgotten, reply.parked, reply.parked_tasks, reply.left,
    reply.holds,
  }
end

local sizes, read, offset = message.sizes, 0, 0
local function next_blob()
  read = read + 1
  offset = offset + sizes[read]
  return string.sub(blobs, offset - sizes[read] + 1, offset)
end

local lots = message.lots or {} -- what is seldom there is left out of the message
local start_keys, turn_keys, lot_keys, item_keys = { start_tasks }, {}, {}, {}
for place = more_keys, #KEYS do
  local after = place - more_keys - message.start_keys
  local keys = after < 0 and start_keys or after < #lots and lot_keys or item_keys
  keys[#keys + 1] = KEYS[place]
end
if message.turn_by then
  for place = #start_keys / 2 + 1, #start_keys do turn_keys[#turn_keys + 1] = start_keys[place] end
end

-- Everything is checked before anything is written: Redis does not roll a script back. Reading each key once finds a foreign type.
local checks = {
  { 'HLEN', counters }, { 'ZCARD', ready }, { message.filter and 'HLEN' or 'SCARD', seen }, { 'HLEN', leases }, { 'ZCARD', owners }, { 'HLEN', numbers },
  { 'LLEN', dead }, { 'HLEN', start_deaths }, { 'LLEN', items }, { 'HLEN', stats }, { 'HLEN', own_stats },
  { 'LLEN', next_tasks }, { 'HLEN', next_tokens }, { 'STRLEN', own_gone }, { 'HLEN', dead_leases },
}
for _, key in ipairs(start_keys) do checks[#checks + 1] = { count_command(key), key } end
for _, key in ipairs(turn_keys) do checks[#checks + 1] = { 'ZCARD', key } end
for _, key in ipairs(lot_keys) do checks[#checks + 1] = { 'LLEN', key } end
-- Who does not know what is held gets it, and nothing to start.
local stale = (redis.pcall('HGET', holds, 'version') or '') ~= (message.holds or '')
if stale or #lots > 0 then
  checks[#checks + 1], checks[#checks + 2] = { 'HLEN', holds }, { 'HLEN', parked }
end
for _, key in ipairs(item_keys) do checks[#checks + 1] = { 'LLEN', key } end
for _, check in ipairs(checks) do
  if type(redis.pcall(check[1], check[2])) ~= 'number' then
    local form = check[2] == seen and stored_form(seen)
    if form then
      reply.layout = form
      return answer('filter')
    end
    return redis.error_reply('WRONGTYPE ' .. check[2] .. ' is a ' .. redis.call('TYPE', check[2])['ok'] .. ' that Trawl did not write' .. MEND)
  end
end
local numeric = { 'order', 'leased', 'leased_tasks', 'acked', 'reclaimed', 'parked', 'parked_tasks' }
local counts = redis.call('HMGET', counters, 'layout', 'custom_queue', unpack(numeric))
local known_layout, custom_queue, last_order = counts[1], counts[2], counts[3]
reply.layout = known_layout or LAYOUT
if reply.layout ~= LAYOUT then return answer('layout') end
for place, counter in ipairs(numeric) do
  local count = counts[place + 2]
  if count and not string.find(count, '^-?%d+$') then
    return redis.error_reply('ERR ' .. counters .. " has the foreign value '" .. count .. "' for " .. counter .. '; remove it')
  end
end
if not known_layout and not last_order then -- nothing of ours was ever stored here: then nothing may wait in the queue, neither
  local first = redis.call('ZRANGE', ready, 0, 0)[1]
  if first and string.byte(first) ~= 0 then
    return redis.error_reply('ERR ' .. ready .. ' holds requests that Trawl did not store' .. MEND)
  end
  local known = not message.filter and redis.call('SRANDMEMBER', seen)
  if known and string.find(known, '^[0-9a-f]+$') and #known == 40 then -- ours are bytes
    return redis.error_reply('ERR ' .. seen .. ' holds fingerprints that Trawl did not store' .. MEND)
  end
end
local filter -- nil: the plain set
if message.filter and message.filter.kind == 'notes' then
  -- include: notes
  filter = open_notes(seen)
elseif message.filter then -- what only it needs costs the others nothing
  -- include: filter_state
  -- include: buckets
  -- include: bloom
  -- include: filter
  local form
  filter, form = open_filter(seen, message.filter)
  if form == '' then return foreign_filter(seen) end
  if form then
    reply.layout = form
    return answer('filter')
  end
end
local had, known_duplicates = string.match(redis.call('HGET', numbers, owner) or '', '^(%d*)|?([%d,]*)')
local gone = redis.call('GET', own_gone)

if out_of_memory(own_gone) then
  reply.full = 1
  let_writes_through(owners) -- what is in flight gets in and makes room; nothing more is leased
end

local said_bye = gone == number and message.bye -- only the answer to the good-bye was lost
if not said_bye and (gone or (had ~= number and had ~= message.previous)) then
  -- Redis came back with an older state than the one that answered us last, or we were taken for dead. Apply nothing: an ack in this message could outlive
  -- children that were lost. Our leases go back; the process forgets them and replays its journal under a new name.
  give_back_all(leases, '', ready, start_tasks, start_deaths, dead, counters, now, 0, 256) -- nobody died
  redis.call('ZREM', owners, owner)
  redis.call('HDEL', numbers, owner)
  redis.call('SET', own_gone, gone or had or 0, 'EX', GONE_S) -- this answer may be lost too
  reply.last_applied = tonumber(gone or had) or 0
  return answer('fenced')
end

if stale then reply.holds = { redis.call('HGETALL', holds), redis.call('HGETALL', parked) } end

local outcome = 'applied'
if not said_bye then redis.call('ZADD', owners, now + message.ttl_ms, owner) end

if said_bye then
  outcome = 'repeated'
elseif had == number then
  -- Applied before, only the answer was lost: the same answer again.
  outcome = 'repeated'
  for place in string.gmatch(known_duplicates, '%d+') do reply.duplicates[#reply.duplicates + 1] = tonumber(place) end
  local n = 1
  while true do
    local id = number .. '.' .. n
    local value = redis.call('HGET', leases, id)
    if not value then break end
    local kind, score, member, key = lease_parts(value)
    if kind ~= FOREIGN then tell_lease(reply.leases, reply.tasks, id, kind, score, member, key) end
    n = n + 1
  end
else
  redis.call('HSETNX', counters, 'layout', LAYOUT)
  if message.order == 'advised' and not custom_queue then redis.call('HSET', counters, 'custom_queue', 1) end -- for whoever looks from outside
  if message.order ~= 'advised' and custom_queue then redis.call('HDEL', counters, 'custom_queue') end

  -- a: a new request is stored in the same step in which its fingerprint is set
  local order = 0
  if #message.requests > 0 then order = redis.call('HINCRBY', counters, 'order', #message.requests) - #message.requests end
  if filter then filter:ready(now) end
  for place, score in ipairs(message.requests) do
    local fingerprint, payload = next_blob(), next_blob()
    if fingerprint == '' or (not filter and redis.call('SADD', seen, fingerprint) == 1) or (filter and not filter:seen(fingerprint)) then
      enqueue(ready, message.order, order + place, score, payload)
    else
      reply.duplicates[#reply.duplicates + 1] = place
    end
  end

  if filter then filter:close(reply.full == 1) end

  -- start tasks for the next service, only where the change token differs from the last one
  for _, task in ipairs(message.tasks) do
    local id, token, data = task[1], task[2], next_blob()
    if redis.call('HGET', next_tokens, id) ~= token then
      redis.call('HSET', next_tokens, id, token)
      redis.call('RPUSH', task[3] and item_keys[task[3]] or next_tasks, data)
    end
  end
  if #message.tasks > 0 then bound_tokens(next_tokens, #message.tasks) end

  for _ = 1, message.items do redis.call('RPUSH', items, next_blob()) end
  for _, place in ipairs(message.keyed_items) do redis.call('RPUSH', item_keys[place], next_blob()) end

  -- c, d and the burying part of f
  local function count(was_ours)
    if not was_ours then reply.lost = reply.lost + 1 end
  end
  for _, id in ipairs(message.acks) do count(ack(leases, counters, start_deaths, id)) end
  for _, id in ipairs(message.releases) do count(release(leases, counters, ready, start_tasks, id)) end
  for _, one in ipairs(message.parks or {}) do
    local id, lot = one[1], one[2]
    if stale then -- the site may not be held any more
      count(release(leases, counters, ready, start_tasks, id))
    else
      count(park(leases, counters, lot_keys[lot], id))
    end
  end
  if message.unpark and not stale and reply.full == 0 then
    unpark(lot_keys[message.unpark], lots[message.unpark], counters, ready, start_tasks, dead, now, MOST_UNPARKED)
  end
  for place, lot in ipairs(lots) do tell_lot(parked, lot_keys[place], lot) end
  for _, burial in ipairs(message.burials) do count(give_up(leases, counters, start_deaths, dead, now, burial[1], burial[2])) end

  for _, change in ipairs(message.stats) do change_stat(stats, own_stats, change[1], change[2], change[3]) end

  -- e: one dead owner for each exchange; the caller learned its name from an earlier answer and passed its keys
  if message.reclaim ~= '' then
    local expires = tonumber(redis.call('ZSCORE', owners, message.reclaim) or nil)
    if expires and expires <= now then
      local last, _, overtaken, concurrency = string.match(
        redis.call('HGET', numbers, message.reclaim) or '', '^(%d*)|?([%d,]*)|?([^|]*)|?(%d*)'
      )
      local moved = give_back_all(
        dead_leases, overtaken, ready, start_tasks, start_deaths, dead, counters, now, tonumber(concurrency) or message.concurrency,
        message.max_attempts
      )
      redis.call('HINCRBY', counters, 'reclaimed', moved)
      redis.call('ZREM', owners, message.reclaim)
      -- kept: an owner that comes back learns what was applied and replays only the rest
      redis.call('SET', dead_gone, last, 'EX', GONE_S)
      redis.call('HDEL', numbers, message.reclaim)
    end
  end

  -- b: the next leases
  local made = { leased = 0, leased_tasks = 0 }
  local function lease(kind, score, member, key)
    local id = number .. '.' .. (made.leased + made.leased_tasks + 1)
    redis.call('HSET', leases, id, lease_value(kind, score, member, key))
    tell_lease(reply.leases, reply.tasks, id, kind, score, member, key)
    made[lease_counter(kind)] = made[lease_counter(kind)] + 1
  end
  if reply.full == 0 then
    -- What was at work in several deaths is tried apart from its like, one for each process: so only the guilty one is there each time.
    local trying, withheld = message.trying, {}
    for _, hex in ipairs(message.claims) do -- what was chosen and is not READY any more is left out
      local member = member_of(ready, hex)
      if member and #member >= 9 and not (trying and attempts_of(member) >= message.suspect_from) then
        trying = trying or attempts_of(member) >= message.suspect_from
        redis.call('ZREM', ready, member)
        lease(REQUEST, '0', member)
      end
    end
    local round, popped = 0, nil
    repeat -- again where some were withheld, for a bounded time
      round = round + 1
      popped = not stale and message.want > made.leased and redis.call('ZPOPMIN', ready, message.want - made.leased) or {}
      for i = 1, #popped, 2 do
        local member, score = popped[i], popped[i + 1]
        if #member < 9 or (string.byte(member) ~= 0 and message.order ~= 'advised') then -- a late one of scrapy-redis stays whole
          bury(dead, now, 'not a request of ours: no order and attempts before the payload', FOREIGN, score, member)
        elseif trying and attempts_of(member) >= message.suspect_from then
          withheld[#withheld + 1] = { score, member }
        else
          trying = trying or attempts_of(member) >= message.suspect_from
          lease(REQUEST, score, member)
        end
      end
    until #popped == 0 or #withheld >= MOST_WITHHELD or round >= MOST_WITHHELD
    for _, one in ipairs(withheld) do redis.call('ZADD', ready, one[1], one[2]) end
    reply.withheld = #withheld
    local tasks = {}
    if message.turn_by then
      -- include: turns
      for place, key in ipairs(turn_keys) do sort_in(start_keys[place], key, message.turn_by, counters) end
      if not stale and message.want_tasks > 0 then
        tasks = take_turns(turn_keys, start_deaths, message.want_tasks, message.room or {}, counters)
      end
    elseif not stale and message.want_tasks > 0 then
      tasks = take_tasks(start_keys, start_deaths, message.want_tasks)
    end
    for _, task in ipairs(tasks) do lease(unpack(task)) end
  end
  for counter, n in pairs(made) do
    if n > 0 then redis.call('HINCRBY', counters, counter, n) end
  end

  local kept = { number, table.concat(reply.duplicates, ','), table.concat(message.overtaken, ','), message.concurrency }
  redis.call('HSET', numbers, owner, table.concat(kept, '|'))
end

if message.bye and not said_bye and redis.call('HLEN', leases) == 0 then
  redis.call('ZREM', owners, owner)
  redis.call('HDEL', numbers, owner)
  redis.call('SET', own_gone, number, 'EX', GONE_S) -- the good-bye may be sent again
end

if message.ask_survives then
  local persistence, replication = redis.pcall('INFO', 'persistence'), redis.pcall('INFO', 'replication')
  if type(persistence) == 'string' and type(replication) == 'string' then -- a user without the right to ask stays at -1
    local by_file_or_replica = string.find(persistence, 'aof_enabled:1') or string.find(replication, 'connected_slaves:[1-9]')
    reply.survives = by_file_or_replica and 1 or 0
  end
end
local forgotten = redis.pcall('GET', forgotten_key(seen))
if type(forgotten) == 'string' then reply.forgotten = forgotten end
local leased = redis.call('HMGET', counters, 'leased', 'leased_tasks', 'parked', 'parked_tasks')
reply.ready, reply.waiting = redis.call('ZCARD', ready), count_tasks(start_keys)
reply.leased, reply.leased_tasks = tonumber(leased[1] or 0), tonumber(leased[2] or 0)
reply.parked, reply.parked_tasks = tonumber(leased[3] or 0), tonumber(leased[4] or 0)
if message.unpark then reply.left = redis.call('LLEN', lot_keys[message.unpark]) end
local expired = redis.call('ZRANGEBYSCORE', owners, '-inf', now, 'LIMIT', 0, 1)[1]
if expired and is_name(expired) then
  reply.expired = expired
elseif expired then
  redis.call('ZREM', owners, expired) -- foreign; it would hide those behind it
end
return answer(outcome)
