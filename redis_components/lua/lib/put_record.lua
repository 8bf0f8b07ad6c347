-- Store a record, a non-empty JSON object, with the time in seconds as its first field `beat_at`: needs lib/clock.
local function put_record(crawlers, name, record)
  redis.call('HSET', crawlers, name, '{"beat_at":' .. string.format('%.3f', now_ms() / 1000) .. ',' .. string.sub(record, 2))
end
