-- Take what scrapy-redis wrote out of the way of our keys, under a separate name: the whole key where Trawl wrote nothing in it, else some of it.
--
-- KEYS[1] source    (zset, list or set)  the key that both packages use
-- KEYS[2] aside     (zset, list or set)  where it waits to be imported
-- KEYS[3] owners    (zset)  Trawl crawlers, score = time at which each counts as dead, in ms
-- ARGV[1] whole     (0, 1)  1: nothing in the key is ours
-- ARGV[2] members   (any number)  whole = 0: members of a zset or set that are not ours, a few thousand at most
-- Returns: {outcome, how many}: 'moved', 'crawling' (Trawl crawlers are at work: nothing changed), 'kinds' (what waits there is of another type: nothing changed)
-- Retry: safe; what was moved is not there any more
local source, aside, owners = KEYS[1], KEYS[2], KEYS[3]
local whole, members = ARGV[1], 2
local MOST = 1000

-- include: clock

if redis.call('ZCOUNT', owners, now_ms(), '+inf') > 0 then return { 'crawling', 0 } end
local kind, held = redis.call('TYPE', source)['ok'], redis.call('TYPE', aside)['ok']
if kind == 'none' then return { 'moved', 0 } end
if held ~= 'none' and held ~= kind then return { 'kinds', 0 } end
local size = redis.call(({ zset = 'ZCARD', list = 'LLEN', set = 'SCARD' })[kind], source)
if whole == '1' and held == 'none' then
  redis.call('RENAME', source, aside)
  return { 'moved', size }
end

local count = 0
if kind == 'list' then
  -- A second time: these are newer. scrapy-redis writes at the head.
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
