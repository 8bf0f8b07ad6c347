-- The order number of one request that is stored without a script: by a queue class used alone.
--
-- KEYS[1] counters  (hash)  order number
-- Returns: the number
-- Retry: safe; an unused number is only left out
local counters = KEYS[1]

-- include: order_numbers

return order_numbers(counters, 1) + 1
