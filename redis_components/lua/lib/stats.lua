-- Changes of stats: shared ones are added up or compared, a process's own are set and kept for a day.
local OWN_STATS_S = 86400

local function change_stat(stats, own_stats, how, field, value)
  if how == 'add' then
    -- pcall: a field that somebody else filled with text must not stop the crawl
    if type(redis.pcall('HINCRBYFLOAT', stats, field, value)) == 'table' then redis.call('HSET', stats, field, value) end
  elseif how == 'set' then
    redis.call('HSET', own_stats, field, value)
    redis.call('EXPIRE', own_stats, OWN_STATS_S)
  else
    local stored = tonumber(redis.call('HGET', stats, field) or nil)
    if not stored or (how == 'max' and tonumber(value) > stored) or (how == 'min' and tonumber(value) < stored) then
      redis.call('HSET', stats, field, value)
    end
  end
end
