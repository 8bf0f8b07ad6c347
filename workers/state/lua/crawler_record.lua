-- Store the record of a crawler that holds no slot: one that was started by hand.
--
-- KEYS[1] crawlers  (hash)  last record of each crawler
-- ARGV[1] name      (text)  '<spider>/hand-<pid>', its field in the hash
-- ARGV[2] record    (JSON object)  the crawler's record, stamped here with the time
-- Returns: 1
-- Retry: safe; the same call again changes no more than the time
local crawlers = KEYS[1]
local name, record = ARGV[1], ARGV[2]

-- include: clock
-- include: put_record

put_record(crawlers, name, record)
return 1
