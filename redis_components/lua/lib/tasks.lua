-- Start tasks in a list, set or zset, and how many crawlers died while they held one. Needs lib/leases.
local MOST_SUSPECTS = 10000
local SUSPECT_S = 86400

-- The command that counts them; no tasks are a zset of none, and a foreign type does not answer to it.
local function count_command(start_tasks)
  return ({ list = 'LLEN', set = 'SCARD' })[redis.call('TYPE', start_tasks)['ok']] or 'ZCARD'
end

local function count_tasks(start_keys)
  local count = 0
  for _, key in ipairs(start_keys) do count = count + redis.call(count_command(key), key) end
  return count
end

local function pop_tasks(start_tasks, wanted)
  local kind, popped = redis.call('TYPE', start_tasks)['ok'], {} -- {kind, score, data, key}
  if kind == 'list' then
    for _, data in ipairs(redis.call('LPOP', start_tasks, wanted) or {}) do popped[#popped + 1] = { 'l', '', data, start_tasks } end
  elseif kind == 'set' then
    for _, data in ipairs(redis.call('SPOP', start_tasks, wanted)) do popped[#popped + 1] = { 's', '', data, start_tasks } end
  elseif kind == 'zset' then
    local flat = redis.call('ZPOPMAX', start_tasks, wanted)
    for i = 1, #flat, 2 do popped[#popped + 1] = { 'z', flat[i + 1], flat[i], start_tasks } end
  end
  return popped
end

-- A task whose crawler died before is taken alone, so that no neighbour dies with it again: those behind it go back.
local function suspects_alone(taken, start_keys, start_deaths)
  if redis.call('EXISTS', start_deaths) == 0 then return taken end
  local keep = 0
  for place, task in ipairs(taken) do
    local suspect = redis.call('HEXISTS', start_deaths, redis.sha1hex(task[3])) == 1
    if not suspect or place == 1 then keep = place end
    if suspect then break end
  end
  for place = #taken, keep + 1, -1 do
    put_back(nil, start_keys[1], unpack(taken[place]))
    taken[place] = nil
  end
  return taken
end

-- Remove and return up to `wanted` tasks, from the first key that has some, then from the next.
local function take_tasks(start_keys, start_deaths, wanted)
  local taken = {}
  for _, key in ipairs(start_keys) do
    if #taken >= wanted then break end
    for _, task in ipairs(pop_tasks(key, wanted - #taken)) do taken[#taken + 1] = task end
  end
  return suspects_alone(taken, start_keys, start_deaths)
end

-- The crawler that held the task died: how many did so far.
local function task_deaths(start_deaths, data)
  if redis.call('HLEN', start_deaths) >= MOST_SUSPECTS then redis.call('DEL', start_deaths) end
  local deaths = redis.pcall('HINCRBY', start_deaths, redis.sha1hex(data), 1)
  if type(deaths) == 'table' then -- a foreign value: counted from one
    deaths = 1
    redis.call('HSET', start_deaths, redis.sha1hex(data), deaths)
  end
  redis.call('EXPIRE', start_deaths, SUSPECT_S)
  return deaths
end

local function forget_deaths(start_deaths, data)
  redis.call('HDEL', start_deaths, redis.sha1hex(data))
end
