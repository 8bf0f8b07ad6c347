-- Start tasks that take turns by one of their fields, their site. Needs lib/tasks and lib/order_numbers.
-- The tasks of a start key are sorted into a separate zset, `<start key>:turns`, whose scores are all 0: member = site, NUL, 8 bytes of order, data. So the tasks of
-- a site lie together in their order, the next site is found by its name, and how long another site's tasks are does not matter.
local MOST_SORTED = 2000 -- tasks of one key in one exchange
local MOST_PEEKED = 200 -- at the end of a list that is longer, where what was pushed last is
local MOST_LOOKS = 300
local LONGEST_SITE = 200

-- The host and port of a URL, as `SiteSlots.name_of` has them; nil where it has none.
local function host_of(url)
  local place = type(url) == 'string' and string.match(url, '^%s*%a[%w+.-]*://([^/?#%s]+)')
  return place and string.lower(string.match(place, '^.*@(.*)$') or place)
end

-- The text in the field `by` of a task in JSON; for `host` also that of its URL, or of a task that is a URL; '' where it has none.
local function site_of(data, by)
  local site = string.match(data, '^{"' .. by .. '":"([^"\\]*)"')
  if not site then
    local readable, fields = pcall(cjson.decode, data)
    site = readable and type(fields) == 'table' and fields[by]
    if by == 'host' and type(site) ~= 'string' then site = host_of(readable and type(fields) == 'table' and fields.url or data) end
  end
  if type(site) ~= 'string' or #site > LONGEST_SITE or string.find(site, '%z') then return '' end
  return site
end

local function turn_of(site, order, data)
  return site .. '\0' .. struct.pack('>I8', order) .. data
end

-- A list is longer than what was sorted of it: a site of which nothing waits for its turn yet does not wait until all of it is. Its first task at the end of
-- the list comes next; of a site that has one the order is kept.
local function peek(key, turns, by, counters)
  if redis.call('TYPE', key)['ok'] ~= 'list' then return end
  local is_known = {}
  for _, data in ipairs(redis.call('LRANGE', key, -MOST_PEEKED, -1)) do
    local site = site_of(data, by)
    if is_known[site] == nil then
      is_known[site] = redis.call('ZLEXCOUNT', turns, '[' .. site .. '\0', '(' .. site .. '\1') > 0
    end
    if not is_known[site] then
      is_known[site] = true
      redis.call('LREM', key, -1, data)
      redis.call('ZADD', turns, '0', turn_of(site, order_numbers(counters, 1) + 1, data))
    end
  end
end

-- Sort what is in `key` behind what waits for its turn in `turns`.
local function sort_in(key, turns, by, counters)
  local tasks = pop_tasks(key, MOST_SORTED)
  if #tasks == 0 then return end
  local order, more = order_numbers(counters, #tasks), {}
  for place, task in ipairs(tasks) do
    more[#more + 1], more[#more + 2] = '0', turn_of(site_of(task[3], by), order + place, task[3])
    if #more >= 1000 or place == #tasks then
      redis.call('ZADD', turns, unpack(more))
      more = {}
    end
  end
  if #tasks == MOST_SORTED then peek(key, turns, by, counters) end
end

-- Remove and return up to `wanted` tasks: one of each site in turn, from the first of `turn_keys` that has some, then from the next; of a site in `room` no
-- more than that number. The counter `turn` is the site that had the last one.
local function take_turns(turn_keys, start_deaths, wanted, room, counters)
  local had = redis.call('HGET', counters, 'turn') or ''
  local taken, turn, looks = {}, had, 0
  for _, key in ipairs(turn_keys) do
    local from, ends = '(' .. turn .. '\1', 0 -- ends of the ring met since a task was taken: at the second all sites have been looked at
    while #taken < wanted and looks < MOST_LOOKS and ends < 2 do
      looks = looks + 1
      local member = redis.call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, 1)[1]
      if member then
        local site = string.match(member, '^[^%z]*')
        if (room[site] or wanted) > 0 then
          redis.call('ZREM', key, member)
          taken[#taken + 1] = { 'z', '0', member, key }
          room[site], turn, ends = (room[site] or wanted) - 1, site, 0
        elseif looks == MOST_LOOKS then
          turn = site -- more than can be looked at have enough: the next exchange begins behind them
        end
        from = '(' .. site .. '\1'
      else
        from, ends = '-', ends + 1
      end
    end
  end
  if turn ~= had then redis.call('HSET', counters, 'turn', turn) end
  return suspects_alone(taken, turn_keys, start_deaths)
end
