-- Take or keep the right to trim one item stream: one writer at a time.
-- The lock remembers the number of its holder's last settled batch, from which settle.lua knows a repeated call.
-- It can be taken while Redis is out of memory: the writer is what makes room. DEL is always allowed, and after a first write so is SET.
--
-- KEYS[1] writer  (string)  '<token>|<number of the last settled batch>' of the holder
-- ARGV[1] token   (text)    names the writer; a new one for each drain, without '|'
-- ARGV[2] ttl_ms  (ms)      the lock is free again when it was not used for this time
-- Returns: 'acquired' (batches count from 0), 'renewed' (was ours; the count goes on) or 'busy' (nothing changed)
-- Retry: safe; a repeated 'acquired' is answered 'renewed', with the count still at 0
local writer = KEYS[1]
local token, ttl_ms = ARGV[1], ARGV[2]

local held = redis.call('GET', writer)
if not held or redis.call('PTTL', writer) == -1 then -- a lock without an expiry is foreign: nothing would ever be stored again
  redis.call('DEL', writer)
  redis.call('SET', writer, token .. '|0', 'PX', ttl_ms)
  return 'acquired'
end
if string.match(held, '^(.*)|%d+$') ~= token then return 'busy' end
redis.call('PEXPIRE', writer, ttl_ms)
return 'renewed'
