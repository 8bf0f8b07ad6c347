-- Exact entries in sets of 64-bit integers, which Redis keeps as sorted arrays of 8 bytes each while they are small. Needs lib/filter_state.
-- An entry is 2 bytes of root and an integer in decimal. Its bucket is found by linear hashing (Litwin 1980): as entries come, one bucket at a time is
-- split in two, so that the load of all stays near the same and no step is long. With more than one root there are that many buckets at first, and
-- the root, which a bucket's number implies, need not be stored: that is how an entry has more than 64 bits.
local BUCKET_LOAD = 210 -- a bucket that waits to be split has about twice as many; Redis's set-max-intset-entries is 512
local MOST_IN_BUCKET = 2000 -- none comes near it

local function level_of(part, roots)
  local level = roots
  while level * 2 <= part.buckets do level = level * 2 end
  return level
end

-- Key of the entry's bucket, and the integer to store there.
local function place_of(part, roots, entry)
  local high, low = string.byte(entry, 1, 2)
  local number = string.sub(entry, 3)
  local hash = high * 256 + low + roots * tonumber(string.sub(number, -10))
  part.level = part.level or level_of(part, roots)
  local bucket = hash % (part.level * 2)
  if bucket >= part.buckets then bucket = hash % part.level end
  return part.prefix .. bucket, number
end

-- 1 or 0 as SADD, SREM and SISMEMBER say it; nil where a bucket's key is somebody else's, which then filters nothing: an error in mid-exchange would
-- leave it half applied.
local function in_bucket(command, part, roots, entry)
  local key, number = place_of(part, roots, entry)
  local answer = redis.pcall(command, key, number)
  if type(answer) == 'number' then return answer end
  if string.find(answer.err, 'WRONGTYPE', 1, true) then return nil end
  error(answer.err)
end

local function remove_entry(part, roots, entry)
  local removed = part.n > 0 and in_bucket('SREM', part, roots, entry) == 1
  if removed then part.n = part.n - 1 end
  return removed
end

local function holds_entry(part, roots, entry)
  return part.n > 0 and in_bucket('SISMEMBER', part, roots, entry) == 1
end

-- Change a set by many members, in chunks that unpack can take.
local function change_bucket(command, key, numbers)
  for first = 1, #numbers, 1000 do redis.pcall(command, key, unpack(numbers, first, math.min(first + 999, #numbers))) end
end

local function split_bucket(part, roots)
  local level = level_of(part, roots)
  local from, to = part.buckets - level, part.buckets
  local root, moved = from % roots, {}
  local numbers = redis.pcall('SRANDMEMBER', part.prefix .. from, MOST_IN_BUCKET) -- all of them
  if numbers.err then numbers = {} end
  for _, number in ipairs(numbers) do
    if (root + roots * tonumber(string.sub(number, -10))) % (level * 2) == to then moved[#moved + 1] = number end
  end
  change_bucket('SADD', part.prefix .. to, moved)
  change_bucket('SREM', part.prefix .. from, moved)
  part.buckets = to + 1
  part.level = nil
end

-- True where the entry is new, or its bucket is not ours.
local function add_entry(part, roots, entry)
  local added = in_bucket('SADD', part, roots, entry)
  if added == 1 then
    part.n = part.n + 1
    if part.n > BUCKET_LOAD * part.buckets then split_bucket(part, roots) end
  end
  return added ~= 0
end
