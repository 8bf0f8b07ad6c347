-- Return the fleet's copy of one origin's robots.txt; where it is missing or too old, one process has to fetch it and the others wait for it.
--
-- KEYS[1] record    (hash)  kind, body, version, etag, modified, rate, until (ms), failures, claim, claim_until (ms)
-- ARGV[1] version   (text)  of the file that the caller has already; '' for none
-- ARGV[2] claim     (text)  name of the caller, another one for each process
-- ARGV[3] claim_ms  (ms)    how long the caller may take to fetch it
-- Returns: {state, ms, failures, kind, version, body, etag, modified, rate}: `same` (the caller's file holds), `known`, `fetch` (the caller fetches it; what is known is too
--          old and may be confirmed by its validators), or `wait` (another process fetches it, for ms at most); ms of an unreachable file: until it is asked for again
-- Retry: safe; the same claim gets the same answer
local record = KEYS[1]
local version, claim, claim_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include: clock

local now = now_ms()
local known = redis.call('HMGET', record, 'kind', 'version', 'body', 'etag', 'modified', 'rate', 'until', 'claim', 'claim_until', 'failures')
local holds_until, claimed_until = tonumber(known[7] or 0) or 0, tonumber(known[9] or 0) or 0
local function answer(state, ms, with_body)
  return { state, ms, tonumber(known[10] or 0) or 0, known[1] or '', known[2] or '', with_body and known[3] or '', known[4] or '', known[5] or '', known[6] or '' }
end

if known[1] and holds_until > now then
  if version ~= '' and version == known[2] then return answer('same', holds_until - now) end
  return answer('known', holds_until - now, true)
end
if known[8] and known[8] ~= claim and claimed_until > now then return answer('wait', claimed_until - now) end
redis.call('HSET', record, 'claim', claim, 'claim_until', now + claim_ms)
if not known[1] then redis.call('PEXPIRE', record, 10 * claim_ms) end -- a process that dies now leaves nothing
return answer('fetch', 0, true)
