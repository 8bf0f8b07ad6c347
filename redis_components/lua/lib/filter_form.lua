-- The dupefilter at a base key: a plain set, or a hash of lib/filter_state with its form.

-- 'set' for a plain set, the form in the hash, '' where nothing is; nil where the key is foreign.
local function stored_form(base)
  local held = redis.call('TYPE', base)['ok']
  if held == 'none' then return '' end
  if held == 'set' then return 'set' end
  return held == 'hash' and redis.call('HGET', base, 'form') or nil
end

-- The error for a key that does not hold a dupefilter of Trawl.
local function foreign_filter(base)
  return redis.error_reply('WRONGTYPE ' .. base .. ' is not a dupefilter that Trawl wrote; remove it')
end
