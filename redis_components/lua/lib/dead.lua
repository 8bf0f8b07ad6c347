-- Entries of the DEAD list, taken out by their place. A place is believed only while the entry there has the SHA-1 that the caller saw.
local TAKEN = '\0taken'

local function entry_at(dead, place, sha)
  local entry = redis.call('LINDEX', dead, place)
  return entry and redis.sha1hex(entry) == sha and entry or nil
end

local function payload_of_dead(entry)
  return string.sub(entry, string.find(entry, '\n', 1, true) + 1)
end

-- LSET leaves the other places as they are; `sweep` then removes what was marked, from the end of the list that is nearer.
local function mark_taken(dead, place)
  redis.call('LSET', dead, place, TAKEN)
end

local function sweep(dead, count, first)
  if count > 0 then redis.call('LREM', dead, tonumber(first) < redis.call('LLEN', dead) / 2 and count or -count, TAKEN) end
end
