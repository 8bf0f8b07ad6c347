-- One exchange of a crawler process with the frontier: all its news, and its next leases, in one atomic step.
-- The states and letters (a enqueue, b lease, c ack, d release, e reclaim, f give up) are those of docs/architecture.md.
-- Keys of other processes or services that it touches are passed by the caller too, so that every key is declared.
--
-- KEYS[1] ready         (zset)   READY requests: score = -priority, member = order, attempts, payload
-- KEYS[2] seen          (set, hash)  fingerprints of requests ever stored; a hash where message.filter names another dupefilter than the plain set: it keeps
--                       its entries in keys that begin with this one and so are in its slot (lib/filter_state), or it is one of notes (lib/notes)
-- KEYS[3] leases        (hash)   this owner's leases
-- KEYS[4] owners        (zset)   owners, score = time at which each counts as dead, in ms
-- KEYS[5] numbers       (hash)   owner -> number of its last exchange '|' the duplicates found in it '|' leases overtaken in its buffer '|' its concurrency '|' what it died over, where its supervisor saw it
-- KEYS[6] counters      (hash)   layout version, order number, leases out, totals
-- KEYS[7] dead          (list)   DEAD requests and start tasks with their reasons
-- KEYS[8] start_tasks   (list, set or zset)  start tasks of this spider
-- KEYS[9] start_deaths  (hash)   SHA-1 of a start task -> crawlers that died while they held it
-- KEYS[10] items        (list)   item stream
-- KEYS[11] stats        (hash)   stats over all processes
-- KEYS[12] own_stats    (hash)   stats that are this owner's own
-- KEYS[13] next_tasks   (list, set or zset)  start tasks of the service that this one feeds
-- KEYS[14] next_tokens  (hash)   task id -> last change token, of the service that this one feeds
-- KEYS[15] own_gone     (string) last number of this owner, if it was taken for dead, was fenced or has left
-- KEYS[16] dead_leases  (hash)   leases of the owner named in message.reclaim
-- KEYS[17] dead_gone    (string) last number of the owner named in message.reclaim
-- KEYS[18] holds        (hash)   what an operator holds, and its version
-- KEYS[19] parked       (hash)   lots of parked requests and start tasks -> how many they hold
-- KEYS[20] bad_items    (list)   items that their consumer refused; only counted here
-- KEYS[21] fed_tasks    (list, set or zset)  start tasks of this spider that another service makes: one of its start keys
-- KEYS[22] fed_turns    (zset)   of these, those that wait for the turn of their site
-- KEYS[23] fed_ids      (hash)   SHA-1 of such a task -> its task id (lib/tasks_by_id)
-- KEYS[24] fed_waiting  (hash)   task id -> newest form of the task that waits
-- KEYS[25] overflow     (hash)   task id -> task for which the start key has no capacity
-- KEYS[26] overflow_order (zset)  these, by site and age
-- KEYS[27] next_turns   (zset)   as fed_turns, of the service that this one feeds
-- KEYS[28] next_ids     (hash)   as fed_ids, of that service
-- KEYS[29] next_waiting (hash)   as fed_waiting, of that service
-- KEYS[30] next_overflow (hash)  as overflow, of that service
-- KEYS[31] next_overflow_order (zset)  as overflow_order, of that service
-- KEYS[32] dead_own_stats (hash)  stats of the owner named in message.reclaim
-- KEYS[33] limits       (hash)   limits of lanes, over all crawls (lib/lanes), and their version
-- KEYS[34] more_keys    (any number) message.start_keys further start keys of this spider, the most urgent first (list, set or zset; with message.turn_by the
--                       last half of all start keys are the zsets in which the tasks of the first half wait for their turns); then the lots in message.lots (list); then lists for items, and for start tasks of the service that this one feeds that may wait
-- ARGV[1] message       (msgpack map)  see redis_components/frontier/messages.py, class Message
-- ARGV[2] blobs         (binary)       end to end, for each of message.requests its fingerprint ('' = no filter) and payload, for each of message.tasks
--                       its data, then the items, then those with a separate key; apart from the message because Redis's cmsgpack does not know the binary type
-- Returns: {name, value, ...}: `outcome`, and of the other fields those that are not 0, empty or false:
--   outcome       'applied', 'repeated' (was applied before, same answer), 'fenced' (nothing applied: this owner is not known any more), 'layout' (nothing
--                 applied: another version of the keys), or 'filter' (nothing applied: another dupefilter is at that key)
--   layout        version of the keys in Redis; for the outcome 'filter' the form of the dupefilter there
--   last_applied  fenced: number of the last exchange of this owner that Redis knows
--   leases        {id, score, order and attempts, payload, ...};  tasks  {id, data, ...}
--   duplicates    {place, ...} of the requests that were known already
--   ready, leased, leased_tasks, waiting, parked, parked_tasks  how many there are; withheld  how many READY requests are not for this owner now
--   expired       an owner that counts as dead;  lost  acks, releases, burials and parkings of leases that were not this owner's any more
--   full          1: Redis is out of memory;  survives  'yes': what Redis holds survives a crash, by an append-only file or replicas; 'no'
--   left          entries left in the lot to be put back
--   items         items that wait or were refused, with message.max_items;  backed_up  1: they are so many that nothing was leased
--   lanes         lanes that hold requests (lib/lanes);  paced  {lease id, lane, ms from now at which it is to be sent or -1, ms that it may be later or -1, ...};  now  Redis's time in ms
--   unsorted      1: start tasks have not been sorted by their turns yet, so those of some sites cannot be seen
--   closing       {lane, ms from now at which its quiet hours begin, ...} of what is leased in it
--   limits        {lane, limits, ...} and the version, where the owner knows another version
--   held, lots    {field, value, ...} and {lot, entries, ...}, where the owner knows another version of what is held and was leased nothing therefore
-- Retry: safe; a message is applied at most once for each owner and number
local ready, seen, leases, owners, numbers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local counters, dead, start_tasks, start_deaths, items = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local stats, own_stats, next_tasks, next_tokens = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local own_gone, dead_leases, dead_gone = KEYS[15], KEYS[16], KEYS[17]
local holds, parked, bad_items = KEYS[18], KEYS[19], KEYS[20]
local fed_tasks, fed_turns, fed_ids, fed_waiting = KEYS[21], KEYS[22], KEYS[23], KEYS[24]
local overflow, overflow_order = KEYS[25], KEYS[26]
local next_turns, next_ids, next_waiting = KEYS[27], KEYS[28], KEYS[29]
local next_overflow, next_overflow_order = KEYS[30], KEYS[31]
local dead_own_stats = KEYS[32]
local limits = KEYS[33]
local more_keys = 34
local message, blobs = cmsgpack.unpack(ARGV[1]), ARGV[2]
local LAYOUT = '1'
local GONE_S = 86400
local GOOD_BYE_S = 3600 -- longer than any connection keeps on sending what was not acknowledged

-- include: clock
-- include: memory
-- include: many
-- include: score
-- include: lanes
-- include: ready_requests
-- include: order_numbers
-- include: leases
-- include: tasks
-- include: tasks_by_id
-- include: reclaim_leases
-- include: stats
-- include: filter_form

local now = now_ms()
local owner, number = message.owner, message.number
local fed = {
  tasks = fed_tasks, turns = fed_turns, ids = fed_ids, waiting = fed_waiting, overflow = overflow, overflow_order = overflow_order,
  newest_fields = message.newest_fields or {}, now = now, most = message.most_fed,
}
local to_feed = {
  tasks = next_tasks, turns = next_turns, ids = next_ids, waiting = next_waiting, overflow = next_overflow, overflow_order = next_overflow_order,
  newest_fields = fed.newest_fields, now = now, most = message.most_fed,
}
local reply = { leases = {}, tasks = {}, now = now }

local function answer(outcome)
  local parts = { 'outcome', outcome }
  for name, value in pairs(reply) do
    if value ~= 0 and value ~= '' and (type(value) ~= 'table' or #value > 0 or name == 'held' or name == 'limits') then parts[#parts + 1], parts[#parts + 2] = name, value end
  end
  return parts
end

local sizes, read, offset = message.sizes, 0, 0
local function next_blob()
  read = read + 1
  offset = offset + sizes[read]
  return string.sub(blobs, offset - sizes[read] + 1, offset)
end

local lots = message.lots or {} -- what is seldom there is left out of the message
local start_keys, turn_keys, lot_keys, lists = { start_tasks }, {}, {}, {}
for place = more_keys, #KEYS do
  local after = place - more_keys - message.start_keys
  local keys = after < 0 and start_keys or after < #lots and lot_keys or lists
  keys[#keys + 1] = KEYS[place]
end
if message.turn_by then
  for place = #start_keys / 2 + 1, #start_keys do turn_keys[#turn_keys + 1] = start_keys[place] end
end

local stale = (redis.pcall('HGET', holds, 'version') or '') ~= (message.holds or '') -- a process without the present holds gets these, and nothing to start

-- The answer in place of applying anything, where a key or a counter is not Trawl's; and `custom_queue` of the counters.
local function check()
  -- include: checks
  local checks = {
    { 'HLEN', counters }, { 'ZCARD', ready }, { message.filter and 'HLEN' or 'SCARD', seen }, { 'HLEN', leases }, { 'ZCARD', owners }, { 'HLEN', numbers },
    { 'LLEN', dead }, { 'HLEN', start_deaths }, { 'LLEN', items }, { 'LLEN', bad_items }, { 'HLEN', stats }, { 'HLEN', own_stats },
    { count_command(next_tasks), next_tasks }, { 'HLEN', next_tokens }, { 'STRLEN', own_gone }, { 'HLEN', dead_leases },
    { count_command(fed_tasks), fed_tasks }, { 'ZCARD', fed_turns }, { 'HLEN', fed_ids }, { 'HLEN', fed_waiting }, { 'HLEN', overflow }, { 'ZCARD', overflow_order },
    { 'ZCARD', next_turns }, { 'HLEN', next_ids }, { 'HLEN', next_waiting }, { 'HLEN', next_overflow }, { 'ZCARD', next_overflow_order },
    { 'HLEN', limits }, { 'ZCARD', lanes_of(ready) },
  }
  for _, key in ipairs(start_keys) do checks[#checks + 1] = { count_command(key), key } end
  for _, key in ipairs(turn_keys) do checks[#checks + 1] = { 'ZCARD', key } end
  for _, key in ipairs(lot_keys) do checks[#checks + 1] = { 'LLEN', key } end
  if stale or #lots > 0 then
    checks[#checks + 1], checks[#checks + 2] = { 'HLEN', holds }, { 'HLEN', parked }
  end
  for _, key in ipairs(lists) do checks[#checks + 1] = { 'LLEN', key } end

  local foreign = foreign_key(checks)
  if foreign then
    reply.layout = foreign == seen and stored_form(seen) or nil
    return reply.layout and answer('filter') or foreign_type(foreign)
  end
  local known_layout, custom_queue, last_order, wrong = read_counters(counters)
  reply.layout = known_layout or LAYOUT
  if reply.layout ~= LAYOUT then return answer('layout') end
  wrong = wrong or (not known_layout and not last_order and foreign_contents(ready, seen, not message.filter))
  return wrong or nil, custom_queue
end

local unfit, custom_queue = check()
if unfit then return unfit end

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

local x = { -- what the functions of lib/storing, lib/telling and lib/leasing share
  message = message, reply = reply, now = now, number = number, next_blob = next_blob, fed = fed, stale = stale, trying = message.trying,
  ready = ready, seen = seen, leases = leases, counters = counters, dead = dead, start_tasks = start_tasks, start_deaths = start_deaths,
  items = items, bad_items = bad_items, parked = parked, made = { leased = 0, leased_tasks = 0 }, leased = {},
}

-- Redis came back with an older state than the one that answered us last, or we were taken for dead. Apply nothing: an ack in this message could outlive
-- children that were lost. Our leases go back; the process forgets them and replays its journal under a new name.
local function fence(last, is_older)
  if is_older then redis.call('SET', older_key(limits), now, 'PX', 86400000) end -- what was sent lately is forgotten, too (lib/pacing)
  give_back_all(leases, '', ready, start_tasks, start_deaths, dead, counters, fed, 0, 256, now) -- no process died; what is at work may be sent meanwhile
  redis.call('ZREM', owners, owner)
  redis.call('HDEL', numbers, owner)
  redis.call('DEL', own_stats) -- it sends them again under its new name
  redis.call('SET', own_gone, last or 0, 'EX', GONE_S) -- this answer may be lost too
  reply.last_applied = tonumber(last) or 0
  return answer('fenced')
end

-- Applied before, only the answer was lost: the same answer again, but that all its times are firm (LATE_MS of lib/sending).
local function repeat_answer(known_duplicates)
  reply.duplicates, reply.paced = {}, {}
  for place in string.gmatch(known_duplicates, '%d+') do reply.duplicates[#reply.duplicates + 1] = tonumber(place) end
  local n = 1
  while true do
    local id = number .. '.' .. n
    local value = redis.call('HGET', leases, id)
    if not value then return end
    local kind, score, member, key, at = lease_parts(value)
    if kind ~= FOREIGN then tell_lease(reply.leases, reply.tasks, id, kind, score, member, key) end
    if kind == REQUEST and key then
      for _, part in ipairs({ id, key, at and math.max(at - now, 0) or -1, at and 12 or -1 }) do table.insert(reply.paced, part) end
    end
    n = n + 1
  end
end

-- e: one dead owner for each exchange; the caller learned its name from an earlier answer and passed its keys. Returns what it was to send and does not (lib/reclaim_leases).
local function reclaim()
  local expires = message.reclaim ~= '' and tonumber(redis.call('ZSCORE', owners, message.reclaim) or nil)
  if not expires or expires > now then return {} end
  local last, _, overtaken, concurrency, why = string.match(
    redis.call('HGET', numbers, message.reclaim) or '', '^(%d*)|?([%d,]*)|?([^|]*)|?(%d*)|?(.*)$'
  )
  local started = tonumber(concurrency) or message.concurrency
  local ended = expires > 0 and expires or now
  local moved, ahead =
    give_back_all(dead_leases, overtaken, ready, start_tasks, start_deaths, dead, counters, fed, started, message.max_attempts, ended, why)
  redis.call('HINCRBY', counters, 'reclaimed', moved)
  redis.call('ZREM', owners, message.reclaim)
  redis.call('SET', dead_gone, last, 'EX', GONE_S) -- kept: an owner that comes back learns what was applied and replays only the rest
  redis.call('HDEL', numbers, message.reclaim)
  redis.call('DEL', dead_own_stats)
  return ahead
end

-- Start tasks to lease; those that wait in the overflow move up whether any is wanted or not.
local function taken_tasks()
  refill(fed, counters)
  local tasks = {}
  if message.turn_by then
    -- include: turns
    for place, key in ipairs(turn_keys) do
      sort_in(start_keys[place], key, message.turn_by, counters)
      if redis.call('EXISTS', start_keys[place]) == 1 then reply.unsorted = 1 end
    end
    if not stale and message.want_tasks > 0 then
      local room = full_lanes(ready, 2 * message.concurrency, message.room or {})
      tasks = take_turns(turn_keys, start_deaths, message.want_tasks, room, counters)
    end
  elseif not stale and message.want_tasks > 0 then
    tasks = take_tasks(start_keys, start_deaths, message.want_tasks)
  end
  return tasks
end

local function apply()
  -- include: item_memory
  -- include: sending
  -- include: settling
  -- include: tokens
  -- include: parking
  -- include: quiet
  -- include: pacing
  -- include: storing
  -- include: telling
  -- include: leasing
  redis.call('HSETNX', counters, 'layout', LAYOUT)
  if message.order == 'advised' and not custom_queue then redis.call('HSET', counters, 'custom_queue', 1) end -- for readers from outside
  if message.order ~= 'advised' and custom_queue then redis.call('HDEL', counters, 'custom_queue') end
  store_requests(x, filter)
  store_tasks(x, next_tokens, to_feed, lists)
  store_items(x, lists)
  for _, id in ipairs(message.unsent or {}) do leave_unsent(x.leases, x.ready, id, x.now, message.quota) end
  ack_told(x, limits)
  release_told(x)
  shelve_told(x)
  keep_off_told(x, limits, owners)
  park_told(x, lots, lot_keys)
  bury_told(x)
  for _, change in ipairs(message.stats) do change_stat(stats, own_stats, change[1], change[2], change[3]) end
  for _, one in ipairs(reclaim()) do
    free_time(limits, one[1], one[2])
    look_soon(x.ready, one[1], x.now)
  end
  if is_backed_up(x) then reply.backed_up = 1 end
  if not x.full and not reply.backed_up then
    lease_claims(x)
    lease_requests(x)
    lease_paced(x, limits)
    for _, task in ipairs(taken_tasks()) do lease(x, newest(fed, unpack(task))) end
    keep_leases(x)
  end
  local kept = { number, table.concat(reply.duplicates, ','), table.concat(message.overtaken, ','), message.concurrency }
  redis.call('HSET', numbers, owner, table.concat(kept, '|'))
end

local function say_good_bye()
  redis.call('ZREM', owners, owner)
  redis.call('HDEL', numbers, owner)
  redis.call('SET', own_gone, number, 'EX', GOOD_BYE_S) -- the good-bye may be sent again; the owner itself is over
  end_stats(stats, own_stats, redis.call('ZCOUNT', owners, now, '+inf') == 0)
end

local function tell_whether_it_survives()
  local persistence, replication = redis.pcall('INFO', 'persistence'), redis.pcall('INFO', 'replication')
  if type(persistence) ~= 'string' or type(replication) ~= 'string' then return end -- a user without the right to ask
  local by_file_or_replica = string.find(persistence, 'aof_enabled:1') or string.find(replication, 'connected_slaves:[1-9]')
  reply.survives = by_file_or_replica and 'yes' or 'no'
end

local function tell_counts()
  reply.lanes = count_lanes(ready)
  if (redis.call('HGET', limits, 'version') or '') ~= (message.limits or '') then reply.limits = redis.call('HGETALL', limits) end
  local leased = redis.call('HMGET', counters, 'leased', 'leased_tasks', 'parked', 'parked_tasks')
  reply.ready, reply.waiting = redis.call('ZCARD', ready), count_tasks(start_keys)
  reply.leased, reply.leased_tasks = tonumber(leased[1] or 0), tonumber(leased[2] or 0)
  reply.parked, reply.parked_tasks = tonumber(leased[3] or 0), tonumber(leased[4] or 0)
  if message.unpark then reply.left = redis.call('LLEN', lot_keys[1]) end
  local expired = redis.call('ZRANGEBYSCORE', owners, '-inf', now, 'LIMIT', 0, 1)[1]
  if expired and is_name(expired) then
    reply.expired = expired
  elseif expired then
    redis.call('ZREM', owners, expired) -- foreign; it would hide those behind it
  end
end

local had, known_duplicates = string.match(redis.call('HGET', numbers, owner) or '', '^(%d*)|?([%d,]*)')
local gone = redis.call('GET', own_gone)
if out_of_memory(own_gone) then
  x.full, reply.full = true, 1
  let_writes_through(owners) -- what is in flight gets in and makes room; nothing more is leased
end
local said_bye = gone == number and message.bye -- only the answer to the good-bye was lost
if not said_bye and (gone or (had ~= number and had ~= message.previous)) then return fence(gone or had, not gone) end
if stale then reply.held, reply.lots = redis.call('HGETALL', holds), redis.call('HGETALL', parked) end
if not said_bye then redis.call('ZADD', owners, now + message.ttl_ms, owner) end
local repeated = said_bye or had == number
if not repeated then
  apply()
elseif not said_bye then
  repeat_answer(known_duplicates)
end
if message.bye and not said_bye and redis.call('HLEN', leases) == 0 then say_good_bye() end
if message.ask_survives then tell_whether_it_survives() end
tell_counts()
return answer(repeated and 'repeated' or 'applied')
