import { FAIR_KEY, FAIR_WEIGHT } from '../entry.ts'

/**
 * Ready messages with a fair key, by self-clocked fair queueing as `transport/fair-share.ts` has it. They wait outside of all streams, their
 * fields where those are that wait for their moment, and `fair` has three members for each, sorted by themselves: `p`, the level (1
 * digit), the place (22) and the id; `k`, the level, the length of the key (4), the key and the place, to find the last of a key; `a`,
 * the level, the moment since which it is ready (15) and the id, to find the oldest. `ids` says `f`, the level, that moment and the
 * place. Needs FIELDS.
 */
export const FAIR: string = `
local fair, turns = unpack(KEYS, 27, 28)
local function first_of(start)
  return call('ZRANGE', fair, '[' .. start, '(' .. start .. ':', 'BYLEX', 'LIMIT', 0, 1)[1]
end
local function share_start(level, key) return 'k' .. level .. string.format('%04.0f', #key) .. key end
local function line_up_share(id, fields, level, key, weight)
  local first, share = first_of('p' .. level), share_start(level, key)
  local last = call('ZREVRANGEBYLEX', fair, '(' .. share .. ':', '[' .. share, 'LIMIT', 0, 1)[1]
  local front = first and tonumber(string.sub(first, 3, 24)) or 0
  local behind = last and tonumber(string.sub(last, #share + 1)) or 0
  local place = string.format('%022.6f', math.max(front, behind) + 1 / weight)
  local since = string.format('%015.0f', now)
  call('ZADD', fair, 0, 'p' .. level .. place .. id, 0, share .. place, 0, 'a' .. level .. since .. id)
  call('HSET', parked, id, cmsgpack.pack(fields))
  call('HSET', ids, id, 'f' .. level .. since .. place)
end
-- From where ids said that it stands. Answers how much of it was there.
local function leave_line(id, ref, fields)
  local level, since, place = string.sub(ref, 2, 2), string.sub(ref, 3, 17), string.sub(ref, 18)
  local members = { 'p' .. level .. place .. id, 'a' .. level .. since .. id }
  local key = fields and field(fields, '${FAIR_KEY}')
  if key then members[3] = share_start(level, key) .. place end
  call('HDEL', parked, id)
  return call('ZREM', fair, unpack(members))
end
local function weight_of(fields) return tonumber(field(fields, '${FAIR_WEIGHT}') or '1') end
`
