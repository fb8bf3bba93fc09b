import { LAST } from './admin.ts'
import { FAIR } from './fair.ts'
import { LINES } from './lines.ts'
import { FIELDS, NOW, PRELUDE, SHELVE } from './prelude.ts'

/**
 * ARGV: group, how many, up to which level, perhaps a reason: then they land on the shelf. Of the ready ones that no worker has read
 * those of the lowest level, the oldest first; then scheduled ones, those that are due last. What has an ordering key stays; of those that stand before others, 5,000 at most are
 * passed over, as the server does nothing else meanwhile. Answers how many.
 */
export const SHED: string = `${PRELUDE}
call('HDEL', meta, '')
${NOW}${LAST}${FIELDS}${FAIR}${LINES}${SHELVE}
local group, most, up_to, reason, gone = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], 0
local left = 5000
local function shed_from(stream)
  local from = last_read(stream, group)
  while gone < most and left > 0 do
    local entries = call('XRANGE', stream, '(' .. from, '+', 'COUNT', 500)
    if #entries == 0 then return end
    for _, entry in ipairs(entries) do
      from, left = entry[1], left - 1
      if gone < most and not key_of(entry[2]) then
        local id = id_of(entry[2], entry[1])
        call('XDEL', stream, entry[1])
        call('HDEL', ids, id)
        if reason then shelve(id, as_it_was(entry[2], id, entry[1], 0), 'permanent', reason) end
        gone = gone + 1
      end
    end
  end
end
local function shed_shares(level)
  local from, to = '[a' .. level, '(a' .. level .. ':'
  while gone < most and left > 0 do
    local members = call('ZRANGE', fair, from, to, 'BYLEX', 'LIMIT', 0, 500)
    if #members == 0 then return end
    for _, member in ipairs(members) do
      from, left = '(' .. member, left - 1
      local id = string.sub(member, 18)
      local packed = gone < most and call('HGET', parked, id)
      local fields = packed and cmsgpack.unpack(packed)
      if fields and not key_of(fields) then
        leave_line(id, call('HGET', ids, id), fields)
        call('HDEL', ids, id)
        if reason then shelve(id, fields, 'permanent', reason) end
        gone = gone + 1
      end
    end
  end
end
for level = 0, math.min(up_to, level_count() - 1) do
  shed_from(level_stream(level))
  shed_shares(level)
end
-- Those that were passed over are the last ones then.
local kept = 0
while gone < most and left > 0 do
  local late = call('ZRANGE', scheduled, -kept - 500, -kept - 1)
  for at = #late, 1, -1 do
    local id = late[at]
    local packed = gone < most and call('HGET', parked, id)
    local fields = packed and cmsgpack.unpack(packed)
    left = left - 1
    -- What came back from a crash and waits comes alone; it stays.
    if fields and level_of(fields) <= up_to and not field(fields, 'alone') and not key_of(fields) then
      call('ZREM', scheduled, id)
      call('HDEL', parked, id)
      call('HDEL', ids, id)
      if reason then shelve(id, fields, 'permanent', reason) end
      gone = gone + 1
    else
      kept = kept + 1
    end
  end
  if #late == 0 then break end
end
return gone
`
