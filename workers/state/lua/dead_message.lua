-- Set a message of the broker aside, with the reason; the oldest ones go where there are too many.
--
-- KEYS[1] messages  (list)    messages that no worker could read or run, oldest first
-- ARGV[1] head      (text)    JSON object with `queue` and `reason`, to which `at_ms` is added
-- ARGV[2] raw       (binary)  the message as it was
-- ARGV[3] most      (number)  messages that are kept
-- Returns: how many of the oldest were dropped
-- Retry: unsafe; the message would be kept twice
local messages = KEYS[1]
local head, raw, most = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include: clock

local entry = cjson.decode(head)
entry.at_ms = now_ms()
local length = redis.call('RPUSH', messages, cjson.encode(entry) .. '\n' .. raw)
if length <= most then return 0 end
redis.call('LTRIM', messages, -most, -1)
return length - most
