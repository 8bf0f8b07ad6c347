-- Exact entries in sets of 64-bit integers, which Redis keeps as sorted arrays of 8 bytes each while they are small. Needs lib/filter_state.
-- An entry is 2 bytes of root and an integer in decimal. Its bucket is found by linear hashing (Litwin 1980): as entries come, one bucket at a time is
-- split in two, so that the load of all stays near the same and no step is long. With more than one root there are that many buckets at first, and
-- the root, which a bucket's number implies, need not be stored: that is how an entry has more than 64 bits.
local BUCKET_LOAD = 210 -- a bucket that waits to be split has about twice as many; Redis's set-max-intset-entries is 512
local MOST_IN_BUCKET = 2000 -- none comes near it

-- The parts of an entry: its integer in decimal, and the number by which it finds its bucket.
local function entry_parts(entry, roots)
  local high, low = string.byte(entry, 1, 2)
  local root, number = high * 256 + low, string.sub(entry, 3)
  return number, root + roots * tonumber(string.sub(number, -10))
end

local function level_of(part, roots)
  local level = roots
  while level * 2 <= part.buckets do level = level * 2 end
  part.level = level
  return level
end

-- Number of the entry's bucket, as text: writing a number takes Lua longer than Redis needs for the lookup, and generations of one size have the same.
local bucket_for, bucket_among, bucket_text
local function bucket_of(part, roots, hash)
  if hash == bucket_for and part.buckets == bucket_among then return bucket_text end
  local level = part.level or level_of(part, roots)
  local bucket = hash % (level * 2)
  if bucket >= part.buckets then bucket = hash % level end
  bucket_for, bucket_among, bucket_text = hash, part.buckets, tostring(bucket)
  return bucket_text
end

-- 1 or 0 as SADD, SREM and SISMEMBER return it; nil where a bucket's key is foreign, which then filters nothing: an error in mid-exchange would
-- leave it half applied.
local function in_bucket(command, part, roots, hash, number)
  local answer = redis.pcall(command, part.prefix .. bucket_of(part, roots, hash), number)
  if type(answer) == 'number' then return answer end
  if string.find(answer.err, 'WRONGTYPE', 1, true) then return nil end
  error(answer.err)
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
local function add_entry(part, roots, hash, number)
  local added = in_bucket('SADD', part, roots, hash, number)
  if added == 1 then
    part.n = part.n + 1
    if part.n > BUCKET_LOAD * part.buckets then split_bucket(part, roots) end
  end
  return added ~= 0
end

local function remove_entry(part, roots, hash, number)
  local removed = part.n > 0 and in_bucket('SREM', part, roots, hash, number) == 1
  if removed then part.n = part.n - 1 end
  return removed
end

local function holds_entry(part, roots, hash, number)
  return part.n > 0 and in_bucket('SISMEMBER', part, roots, hash, number) == 1
end
