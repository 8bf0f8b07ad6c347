-- Move start tasks of history into the lane "later", as many of each site as it may spend now; the others go to the list's end.
--
-- KEYS[1] backlog  (list)   start tasks (JSON with `site`) that wait for budget
-- KEYS[2] later_tasks (list)   start tasks that crawlers take when idle
-- ARGV[1] most     (count)  tasks looked at
-- ARGV[2] sites    (any number)  for each site its name and how many tasks of it may be moved
-- Returns: for each given site the number of moved tasks
-- Retry: safe; a second call moves as many again, which the budget counts afterwards
local backlog, later_tasks = KEYS[1], KEYS[2]
local most = tonumber(ARGV[1])
local sites = 2

local allowed, moved = {}, {}
local left = 0
for at = sites, #ARGV, 2 do
  allowed[ARGV[at]], moved[ARGV[at]] = tonumber(ARGV[at + 1]), 0
  left = left + allowed[ARGV[at]]
end
redis.call('LLEN', later_tasks) -- a foreign type is found before anything is written
for _ = 1, math.min(most, redis.call('LLEN', backlog)) do
  if left < 1 then break end
  local task = redis.call('LPOP', backlog)
  local readable, fields = pcall(cjson.decode, task)
  local site = readable and type(fields) == 'table' and fields.site
  if not site then
    redis.call('RPUSH', later_tasks, task) -- the spider sets it aside with the reason
  elseif allowed[site] and allowed[site] > moved[site] then
    redis.call('RPUSH', later_tasks, task)
    moved[site], left = moved[site] + 1, left - 1
  else
    redis.call('RPUSH', backlog, task)
  end
end
local counts = {}
for at = sites, #ARGV, 2 do counts[#counts + 1] = moved[ARGV[at]] end
return counts
