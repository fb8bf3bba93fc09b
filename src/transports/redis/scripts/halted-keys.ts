import { LINES, MOVE_ON } from './lines.ts'
import { ADD, FIELDS, NOW, PRELUDE, RING, SHELVE } from './prelude.ts'

const TOLD = `${FIELDS}${LINES}
local function told(key)
  local head = call('HGET', heads, key)
  local id = halted_by(head)
  return id and { key, id, string.sub(head, 2, 16), call('ZLEXCOUNT', behind, bounds_of(key)) }
end
`

/** ARGV: where the page begins, how many. By key; of each the key, the dead letter, since when, how many wait. */
export const LIST_HALTED: string = `${PRELUDE}${NOW}${TOLD}
local out = {}
for _, key in ipairs(call('ZRANGE', halted, ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])) do
  out[#out + 1] = told(key) or nil
end
return out
`

/** ARGV: key. The same of one. */
export const GET_HALTED: string = `${PRELUDE}${NOW}${TOLD}
return told(ARGV[1])
`

/** ARGV: actor, reason, then keys. Answers those that were halted and go on now. */
export const SKIP_KEYS: string = `${PRELUDE}
call('HDEL', meta, '')
${NOW}${RING}${FIELDS}${LINES}${ADD}${SHELVE}${MOVE_ON}
local skipped = {}
for i = 3, #ARGV do
  local key = ARGV[i]
  local id = halted_by(call('HGET', heads, key))
  if id then
    advance(key)
    call('XADD', audit, 'MAXLEN', '~', 100000, '*', 'at', whole(now), 'act', 'skip', 'id', id, 'actor', ARGV[1], 'reason', ARGV[2])
    skipped[#skipped + 1] = key
  end
end
if #skipped > 0 then ring() end
return skipped
`
