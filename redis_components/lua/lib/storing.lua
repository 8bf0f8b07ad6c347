-- The writes of a message. `x` is the exchange: the keys by their names in exchange.lua, `message`, `reply`, `now` and `next_blob`. Needs lib/many, lib/ready_requests,
-- lib/order_numbers, lib/lanes, lib/tasks_by_id and lib/tokens.

-- New requests of lanes; of each lane their scores and members.
local function store_in_lanes(ready, by_lane)
  local holding = {}
  for lane, members in pairs(by_lane) do
    call_with_many('ZADD', lane_key(ready, lane), members)
    holding[#holding + 1], holding[#holding + 2] = 0, lane
  end
  for from = 1, #holding, 1000 do redis.call('ZADD', lanes_of(ready), 'NX', unpack(holding, from, math.min(from + 999, #holding))) end
end

-- a: a new request is stored in the same step in which its fingerprint is set. A pace is its place, its lane, '' for none, and the time before which it is not
-- leased (ms), 0 for none.
local function store_requests(x, filter)
  local message, duplicates, order, paces, plain, by_lane = x.message, {}, 0, {}, {}, {}
  local seen, next_blob, kind = x.seen, x.next_blob, message.order
  for _, pace in ipairs(message.paces or {}) do paces[pace[1]] = pace end
  if #message.requests > 0 then order = order_numbers(x.counters, #message.requests) end
  if filter then filter:ready(x.now) end
  for place, score in ipairs(message.requests) do
    local fingerprint, payload = next_blob(), next_blob()
    if fingerprint ~= '' and ((not filter and redis.call('SADD', seen, fingerprint) == 0) or (filter and filter:seen(fingerprint))) then
      duplicates[#duplicates + 1] = place
    elseif kind == 'advised' then
      enqueue(x.ready, kind, order + place, score, payload)
    else
      local pace, members, member = paces[place], plain, new_member(kind, order + place, payload)
      if kind ~= 'priority' then score = 0 end
      if pace and pace[3] > 0 then
        to_later(x.ready, pace[2], score, member, pace[3])
      else
        if pace then
          members = by_lane[pace[2]] or {}
          by_lane[pace[2]] = members
        end
        members[#members + 1], members[#members + 2] = score, member
      end
    end
  end
  call_with_many('ZADD', x.ready, plain)
  store_in_lanes(x.ready, by_lane)
  if filter then filter:close() end
  x.reply.duplicates = duplicates
end

-- Start tasks for the next service, only where the change token differs from the last one; in the place of the one with that id that waits already.
local function store_tasks(x, next_tokens, to_feed, lists)
  local tasks = x.message.tasks
  if #tasks == 0 then return end
  forget_if_empty(to_feed)
  for _, one in ipairs(tasks) do
    local id, token, lane, wide, site = unpack(one)
    local task = { wide = wide, data = x.next_blob() }
    if redis.call('HGET', next_tokens, id) ~= token then
      redis.call('HSET', next_tokens, id, token)
      if lane == 0 then
        make_task(to_feed, id, task, site)
      elseif is_apart(to_feed, id, task) then
        redis.call('RPUSH', lists[lane], task.data)
      end
    end
  end
  bound_tokens(next_tokens, #tasks)
end

local function store_items(x, lists)
  for _ = 1, x.message.items do redis.call('RPUSH', x.items, x.next_blob()) end
  for _, place in ipairs(x.message.keyed_items) do redis.call('RPUSH', lists[place], x.next_blob()) end
end
