-- Leave the beats of this fleet; the leader gives the lock back, so that the next one need not wait until it runs out.
--
-- KEYS[1] leader  (string)  '<token>|<owner>' of the beat that sends
-- KEYS[2] beats   (zset)    every beat process; score = time of its last word, ms
-- ARGV[1] owner   (text)    the beat that leaves
-- Returns: 'resigned', or 'follows' when it did not lead
-- Retry: safe; the second call finds nothing to give back
local leader, beats = KEYS[1], KEYS[2]
local owner = ARGV[1]

redis.call('ZREM', beats, owner)
if string.match(redis.call('GET', leader) or '', '^%d+|(.*)$') ~= owner then return 'follows' end
redis.call('DEL', leader)
return 'resigned'
