import { LAST } from './admin.ts'
import { FIELDS, NOW, PRELUDE, SHELVE } from './prelude.ts'

/**
 * ARGV: group, how many, perhaps a reason: then they land on the shelf. Of the ready ones the oldest that no worker has read; then
 * scheduled ones, those that are due last. Answers how many.
 */
export const SHED: string = `${PRELUDE}
call('HDEL', meta, '')
${NOW}${LAST}${FIELDS}${SHELVE}
local group, most, reason, gone = ARGV[1], tonumber(ARGV[2]), ARGV[3], 0
if call('EXISTS', ready) == 1 then
  for _, entry in ipairs(call('XRANGE', ready, '(' .. last_read(ready, group), '+', 'COUNT', most)) do
    local id = id_of(entry[2], entry[1])
    call('XDEL', ready, entry[1])
    call('HDEL', ids, id)
    if reason then shelve(id, as_it_was(entry[2], id, entry[1], 0), 'permanent', reason) end
    gone = gone + 1
  end
end
if gone < most then
  local late = call('ZRANGE', scheduled, gone - most, -1)
  for at = #late, 1, -1 do
    local id = late[at]
    local packed = call('HGET', parked, id)
    -- What came back from a crash and waits comes alone; it stays.
    local fields = packed and cmsgpack.unpack(packed)
    if fields and not field(fields, 'alone') then
      call('ZREM', scheduled, id)
      call('HDEL', parked, id)
      call('HDEL', ids, id)
      if reason then shelve(id, fields, 'permanent', reason) end
      gone = gone + 1
    end
  end
end
return gone
`
