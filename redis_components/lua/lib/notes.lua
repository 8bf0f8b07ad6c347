-- In place of a dupefilter, where a class of the user's was asked already: a request is new while the note of it is there, and the note goes.

local function open_notes(notes)
  return {
    ready = function() end,
    seen = function(_, fingerprint) return redis.call('HDEL', notes, fingerprint) == 0 end,
    close = function() end,
  }
end
