-- Take what scrapy-redis wrote out of the way of our keys, under a separate name.
--
-- KEYS[1] source    (zset, list or set)  the key that both packages use
-- KEYS[2] aside     (zset, list or set)  where it waits to be imported
-- KEYS[3] owners    (zset)  Trawl crawlers, score = time at which each counts as dead, in ms
-- ARGV[1] members   (any number)  members of a zset or set that are not ours, a few thousand at most; none: all of the key, of a list in parts
-- Returns: {outcome, how many}: 'moved', 'crawling' (Trawl crawlers are at work: nothing changed), 'kinds' (what waits there is of another type: nothing changed)
-- Retry: safe; what was moved is not there any more
local source, aside, owners = KEYS[1], KEYS[2], KEYS[3]
local members = 1
local MOST = 1000

-- include: clock

if redis.call('ZCOUNT', owners, now_ms(), '+inf') > 0 then return { 'crawling', 0 } end
local kind, held = redis.call('TYPE', source)['ok'], redis.call('TYPE', aside)['ok']
if kind == 'none' then return { 'moved', 0 } end
if held ~= 'none' and held ~= kind then return { 'kinds', 0 } end

local count = 0
if #ARGV < members and held == 'none' then
  count = redis.call(({ zset = 'ZCARD', list = 'LLEN', set = 'SCARD' })[kind], source)
  redis.call('RENAME', source, aside)
  return { 'moved', count }
end
if kind == 'list' then
  -- Those that wait there already are older. scrapy-redis writes at the head.
  while count < MOST and redis.call('LLEN', source) > 0 do
    redis.call('LMOVE', source, aside, 'RIGHT', 'LEFT')
    count = count + 1
  end
elseif kind == 'zset' then
  for at = members, #ARGV do
    local score = redis.call('ZSCORE', source, ARGV[at])
    if score then
      redis.call('ZADD', aside, score, ARGV[at])
      redis.call('ZREM', source, ARGV[at])
      count = count + 1
    end
  end
else
  for at = members, #ARGV do count = count + redis.call('SMOVE', source, aside, ARGV[at]) end
end
return { 'moved', count }
