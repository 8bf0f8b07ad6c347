-- Start tasks that another service has made: of each task id at most one waits, and a crawler gets its newest form.
-- The start key holds a task as it was first made, so that readers find it there. The hash `waiting` holds the newest form under the task's id: a msgpack
-- array {wide, time since which it waits in ms, order of its making, newest text}. The hash `ids` leads from the SHA-1 of the text in the start key, or of one that is leased or parked, to
-- <wide>|<how many there are>|<order of its making>|<id>. What comes while the start key is full for its site waits in the hash `overflow` (id -> msgpack
-- array {wide, order of its making, text}) and in the zset `overflow_order` (score 0, member = site, NUL, 8 bytes of order, id).
-- A task is {wide, made, data}; `made` is the order of making, a number that is counted in the field `made` of `ids`.
-- `fed` holds these keys by their names, the start key `tasks` and its `turns` (lib/turns), `newest_fields`, `now`, and `most`: tasks that may wait, nil without a bound.
-- Needs lib/leases and lib/tasks.
local FORGOTTEN_MS = 86400000 -- it was removed from the start key by hand, or a crawler of an older version took it
local MOST_REFILLED = 500
local MOST_OF_A_SITE = 100
local MOST_SITES = 50

local function unpacked(text, size)
  local readable, fields = pcall(cmsgpack.unpack, text or '')
  return readable and type(fields) == 'table' and type(fields[size]) == 'string' and fields or nil
end

local function record_of(fed, id)
  local fields = unpacked(redis.call('HGET', fed.waiting, id), 4)
  return fields and { wide = tonumber(fields[1]) or 0, at = tonumber(fields[2]) or 0, made = tonumber(fields[3]) or 0, data = fields[4] }
end

local function overflow_of(fed, id)
  local fields = unpacked(redis.call('HGET', fed.overflow, id), 3)
  return fields and { wide = tonumber(fields[1]) or 0, made = tonumber(fields[2]) or 0, data = fields[3] }
end

local function keep_waiting(fed, id, task, at)
  redis.call('HSET', fed.waiting, id, cmsgpack.pack({ task.wide, at, task.made, task.data }))
end

local function keep_over(fed, id, task)
  redis.call('HSET', fed.overflow, id, cmsgpack.pack({ task.wide, task.made, task.data }))
end

-- The id of a task with this text, the task, and how many there are; nothing where it has no id.
local function id_of(fed, data)
  local wide, count, made, id = string.match(redis.call('HGET', fed.ids, redis.sha1hex(data)) or '', '^([01])|(%d+)|(%d+)|(.*)$')
  return id, id and { wide = tonumber(wide), made = tonumber(made), data = data }, tonumber(count)
end

-- One more, or one less, with this text and this id. False where another id has the very same text: the two cannot be distinguished.
local function count_text(fed, id, task, change)
  local known, one, count = id_of(fed, task.data)
  if known and known ~= id then return false end
  local sha, made = redis.sha1hex(task.data), math.max(task.made, one and one.made or 0)
  count = (count or 0) + change
  if count > 0 then
    redis.call('HSET', fed.ids, sha, string.format('%d|%d|%.0f|%s', task.wide, count, made, id))
  else
    redis.call('HDEL', fed.ids, sha)
  end
  return true
end

-- The task that covers both: the newer one, unless the older one is wider; in the fields named by `newest_fields` the newer value counts where there is one.
local function merged(fed, older, newer)
  if older.made > newer.made then older, newer = newer, older end
  local base, other = newer, older
  if older.wide > newer.wide then base, other = older, newer end
  base = { wide = base.wide, made = newer.made, data = base.data }
  if #fed.newest_fields == 0 or base.data == other.data then return base end
  local readable, fields, more = pcall(function() return cjson.decode(base.data), cjson.decode(other.data) end)
  if not readable or type(fields) ~= 'table' or type(more) ~= 'table' then return base end
  local changed = false
  for _, name in ipairs(fed.newest_fields) do
    local value = more[name]
    local missing = fields[name] == nil or fields[name] == cjson.null
    if value ~= nil and value ~= cjson.null and value ~= fields[name] and (missing or other == newer) then
      fields[name], changed = value, true
    end
  end
  if not changed then return base end
  local written, text = pcall(cjson.encode, fields)
  if written then base.data = text end
  return base
end

local function waiting_of(fed, site)
  return redis.call(count_command(fed.tasks), fed.tasks) + redis.call('ZLEXCOUNT', fed.turns, '[' .. site .. '\0', '(' .. site .. '\1')
end

-- Into the start key; without an id where it has the text of another one.
local function place_task(fed, id, task)
  local held = redis.call('TYPE', fed.tasks)['ok']
  if held == 'set' then
    redis.call('SADD', fed.tasks, task.data)
  elseif held == 'zset' then
    redis.call('ZADD', fed.tasks, 0, task.data)
  else
    redis.call('RPUSH', fed.tasks, task.data)
  end
  if count_text(fed, id, task, 1) then keep_waiting(fed, id, task, fed.now) end
end

-- The start key is empty: the tasks that `waiting` still counts were removed by hand.
local function forget_if_empty(fed)
  if redis.call(count_command(fed.tasks), fed.tasks) == 0 and redis.call('ZCARD', fed.turns) == 0 then redis.call('UNLINK', fed.waiting) end
end

local function next_made(fed)
  local made = redis.pcall('HINCRBY', fed.ids, 'made', 1)
  if type(made) == 'number' then return made end
  redis.call('HSET', fed.ids, 'made', fed.now) -- a foreign value
  return fed.now
end

-- One task more, in place of the one with its id that waits.
local function make_task(fed, id, task, site)
  local record, over = record_of(fed, id), overflow_of(fed, id)
  task.made = math.max(next_made(fed), (record and record.made or 0) + 1, (over and over.made or 0) + 1)
  if record and record.at > fed.now - FORGOTTEN_MS then
    keep_waiting(fed, id, merged(fed, record, task), record.at)
    return
  end
  if record then task = merged(fed, record, task) end
  if over then task = merged(fed, over, task) end
  if fed.most and (over or waiting_of(fed, site) >= fed.most) then
    keep_over(fed, id, task)
    if not over then redis.call('ZADD', fed.overflow_order, 0, site .. '\0' .. struct.pack('>I8', task.made) .. id) end
    return
  end
  redis.call('HDEL', fed.overflow, id)
  place_task(fed, id, task)
end

-- A task for another list: true where it has to go there, because none with its id waits in the start key.
local function is_apart(fed, id, task)
  local record, over = record_of(fed, id), overflow_of(fed, id)
  task.made = next_made(fed)
  if record and task.wide > record.wide then keep_waiting(fed, id, merged(fed, record, task), record.at) end
  if over and task.wide > over.wide then keep_over(fed, id, merged(fed, over, task)) end
  return not record and not over
end

-- Tasks in the overflow go into the start key, of each site in turn as much as there is capacity for.
local function refill(fed, counters)
  if redis.call('EXISTS', fed.overflow_order) == 0 then return end
  local site, moved, wrapped = redis.call('HGET', counters, 'refilled') or '', 0, false
  local from = '(' .. site .. '\1'
  for _ = 1, MOST_SITES do
    local first = redis.call('ZRANGEBYLEX', fed.overflow_order, from, '+', 'LIMIT', 0, 1)[1]
    if first then
      site = string.match(first, '^[^%z]*')
      local free = math.min(fed.most - waiting_of(fed, site), MOST_OF_A_SITE)
      local members = free > 0 and redis.call('ZRANGEBYLEX', fed.overflow_order, '[' .. site .. '\0', '(' .. site .. '\1', 'LIMIT', 0, free) or {}
      for _, member in ipairs(members) do
        local id = string.sub(member, #site + 10)
        local task = overflow_of(fed, id)
        redis.call('ZREM', fed.overflow_order, member)
        redis.call('HDEL', fed.overflow, id)
        if task then place_task(fed, id, task) end -- else it was asked for by name meanwhile
      end
      moved, from = moved + #members, '(' .. site .. '\1'
    elseif wrapped then
      break
    else
      from, wrapped = '-', true
    end
    if moved >= MOST_REFILLED then break end
  end
  redis.call('HSET', counters, 'refilled', site)
end

-- The text of a task, and what stands before it in the key of the turns.
local function text_of(kind, member, key)
  local _, data = out_of_turn(kind, key, member)
  data = data or member
  return data, string.sub(member, 1, #member - #data)
end

-- The task as it is leased: in its newest form; what changes from now on makes one more.
local function newest(fed, kind, score, member, key)
  local data, before = text_of(kind, member, key)
  local id, task = id_of(fed, data)
  local record = id and record_of(fed, id)
  if not record then return kind, score, member, key end
  redis.call('HDEL', fed.waiting, id)
  count_text(fed, id, task, -1)
  count_text(fed, id, record, 1)
  return kind, score, before .. record.data, key
end

-- The lease of a task ended for good.
local function forget_id(fed, kind, member, key)
  local id, task = id_of(fed, (text_of(kind, member, key)))
  if id then count_text(fed, id, task, -1) end
end

-- Back to where it came from; a task that was made meanwhile with its id takes it over instead.
local function give_back(fed, ready, start_tasks, kind, score, member, key)
  if kind ~= REQUEST then
    local id, task = id_of(fed, (text_of(kind, member, key)))
    local record = id and record_of(fed, id)
    if record then
      keep_waiting(fed, id, merged(fed, task, record), record.at)
      count_text(fed, id, task, -1)
      return
    elseif id then
      local over = overflow_of(fed, id)
      if over then redis.call('HDEL', fed.overflow, id) end
      keep_waiting(fed, id, over and merged(fed, task, over) or task, fed.now)
    end
  end
  put_back(ready, start_tasks, kind, score, member, key)
end
