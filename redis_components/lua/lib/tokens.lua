-- The change tokens of the start tasks that a service has made for the next one.
local MOST_TOKENS = 2000000

-- Above the bound as many random ones go as were set: a token that is missing makes one task too many, and no more.
local function bound_tokens(tokens, set)
  local over = redis.call('HLEN', tokens) - MOST_TOKENS
  if over > 0 then redis.call('HDEL', tokens, unpack(redis.call('HRANDFIELD', tokens, math.min(over, 2 * set, 1000)))) end
end
