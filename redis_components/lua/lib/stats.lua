-- Changes of stats: shared ones are added up or compared, a process's own are set. They are there as long as the process; when the last one leaves, its own
-- become the shared ones of the finished crawl.
local OWN_STATS_S = 86400 -- should the end of its process never be noticed
local MOST_OWN = 1000
local ENDS = { 'finish_reason', 'finish_time', 'elapsed_time_seconds' } -- of Scrapy's CoreStats

-- A process has begun to crawl: the stats are counted from the first one's time on, and the crawl is not finished.
local function begin_stats(stats, start_time)
  local known = redis.call('HGET', stats, 'start_time')
  if not known or start_time < known then redis.call('HSET', stats, 'start_time', start_time) end
  redis.call('HDEL', stats, unpack(ENDS))
end

-- A process has left; `is_last`: no other one crawls.
local function end_stats(stats, own_stats, is_last)
  if is_last then
    local fields = ENDS
    if redis.call('HLEN', own_stats) <= MOST_OWN then fields = redis.call('HKEYS', own_stats) end
    for _, field in ipairs(fields) do
      local value = field ~= 'start_time' and redis.call('HGET', own_stats, field)
      if value then redis.call('HSET', stats, field, value) end
    end
  end
  redis.call('DEL', own_stats)
end

local function change_stat(stats, own_stats, how, field, value)
  if how == 'add' then
    -- pcall: a field that another process filled with text must not stop the crawl
    if type(redis.pcall('HINCRBYFLOAT', stats, field, value)) == 'table' then redis.call('HSET', stats, field, value) end
  elseif how == 'set' then
    redis.call('HSET', own_stats, field, value)
    redis.call('EXPIRE', own_stats, OWN_STATS_S)
    if field == 'start_time' then begin_stats(stats, value) end
  else
    local stored = tonumber(redis.call('HGET', stats, field) or nil)
    if not stored or (how == 'max' and tonumber(value) > stored) or (how == 'min' and tonumber(value) < stored) then
      redis.call('HSET', stats, field, value)
    end
  end
end
