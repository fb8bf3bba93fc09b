import { FAIR } from './fair.ts'
import { LINES, MOVE_ON } from './lines.ts'
import { ADD, CLAIMS, FIELDS, NOW, PRELUDE, RING, SHELVE } from './prelude.ts'

export const EXISTS: string = `${PRELUDE}
return is_known(call('HGET', meta, 'layout')) and 1 or 0
`

/** Where the group has read up to, and how many levels there are: one, unless a message of a higher one was ever sent. */
export const LAST = `
local function level_count() return tonumber(call('HGET', meta, 'levels') or '1') end
local function last_read(stream, group)
  local groups = redis.pcall('XINFO', 'GROUPS', stream)
  for _, info in ipairs(groups.err and {} or groups) do
    local named = {}
    for i = 1, #info, 2 do named[info[i]] = info[i + 1] end
    if named.name == group then return named['last-delivered-id'] end
  end
  return '0-0'
end
`

/** ARGV: group. Answers depth, scheduled, in flight, dead, age in ms, paused. What fell due counts as ready. */
export const GAUGE: string = `${PRELUDE}${NOW}${LAST}${FAIR}
-- What waits behind others of its key counts from the start.
local group, depth, flying, oldest = ARGV[1], call('ZCARD', KEYS[16]), 0, now
local streams = { suspects, turns }
for level = 0, level_count() - 1 do streams[#streams + 1] = level_stream(level) end
for _, stream in ipairs(streams) do
  if call('EXISTS', stream) == 1 then
    local held = redis.pcall('XPENDING', stream, group)
    local pending = held.err and 0 or held[1]
    flying = flying + pending
    depth = depth + math.max(0, call('XLEN', stream) - pending)
    local first = call('XRANGE', stream, '(' .. last_read(stream, group), '+', 'COUNT', 1)[1]
    if first then oldest = math.min(oldest, tonumber(string.match(first[1], '^%d+'))) end
  end
end
depth = depth + call('ZLEXCOUNT', fair, '[p', '(q')
for level = 0, level_count() - 1 do
  local first = first_of('a' .. level)
  if first then oldest = math.min(oldest, tonumber(string.sub(first, 3, 17))) end
end
local due = call('ZCOUNT', scheduled, '-inf', whole(now))
local first = call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')
if due > 0 then oldest = math.min(oldest, tonumber(first[2])) end
local waiting = call('ZCARD', scheduled) - due
local paused = call('HEXISTS', meta, 'paused')
return { depth + due, waiting, flying, call('ZCARD', dead), whole(now - oldest), paused }
`

const FIND = `${FIELDS}
local function find(id)
  local ref = call('HGET', ids, id)
  if not ref and string.find(id, '^%d+%-%d+$') then
    local entry = call('XRANGE', ready, id, id)[1]
    if entry and id_of(entry[2], id) == id then ref = id end
  end
  if not ref or string.find(ref, '^[zbf]') then return ref end
  return ref, place_of(ref)
end
`

/** ARGV: group, id. Answers nothing, or state, moment of readiness, entry id and fields. */
export const GET: string = `${PRELUDE}${NOW}${FIND}
local group, id = ARGV[1], ARGV[2]
local ref, stream, entry_id = find(id)
if not ref then return false end
if ref == 'z' then
  local packed, ready_at = call('HGET', parked, id), call('ZSCORE', scheduled, id)
  if not packed or not ready_at then return false end
  return { tonumber(ready_at) > now and 'scheduled' or 'ready', ready_at, '0-0', cmsgpack.unpack(packed) }
end
if string.sub(ref, 1, 1) == 'f' then
  local packed = call('HGET', parked, id)
  return packed and { 'ready', whole(tonumber(string.sub(ref, 3, 17))), '0-0', cmsgpack.unpack(packed) }
end
if string.sub(ref, 1, 1) == 'b' then
  local packed, ready_at = call('HGET', parked, id), tonumber(string.sub(ref, 18))
  if not packed then return false end
  local fields = cmsgpack.unpack(packed)
  return { 'ready', ready_at > 0 and whole(ready_at) or field(fields, 'at'), '0-0', fields }
end
local entry = call('XRANGE', stream, entry_id, entry_id)[1]
if not entry then return false end
local held = redis.pcall('XPENDING', stream, group, entry_id, entry_id, 1)
return { #held > 0 and 'in flight' or 'ready', string.match(entry_id, '^%d+'), entry_id, entry[2] }
`

/** ARGV: group, id. Answers 1 or 0. */
export const CANCEL: string = `${PRELUDE}${NOW}${RING}${FIND}${LINES}${ADD}${SHELVE}${MOVE_ON}
local group, id = ARGV[1], ARGV[2]
local ref, stream, entry_id = find(id)
if not ref then return 0 end
call('HDEL', ids, id)
local fields, gone
if stream then
  local entry = call('XRANGE', stream, entry_id, entry_id)[1]
  fields = entry and entry[2] or {}
  call('XACK', stream, group, entry_id)
  gone = call('XDEL', stream, entry_id)
else
  local packed = call('HGET', parked, id)
  fields = packed and cmsgpack.unpack(packed) or {}
  if string.sub(ref, 1, 1) == 'f' then gone = math.min(1, leave_line(id, ref, fields)) else gone = call('ZREM', scheduled, id) end
  call('HDEL', parked, id)
end
local key = key_of(fields)
if not key then return gone end
if string.sub(ref, 1, 1) == 'b' then return call('ZREM', behind, line_of(key) .. string.sub(ref, 2) .. id) end
if move_on(key) then ring() end
return gone
`

/** ARGV: 1 or 0. */
export const SET_PAUSED: string = `${PRELUDE}${RING}
if ARGV[1] == '1' then call('HSET', meta, 'paused', '1') else call('HDEL', meta, 'paused') end
ring()
return 1
`

/** ARGV: group. Removes a step of what waits and answers how much; 0 when nothing is left. */
export const PURGE: string = `${PRELUDE}${NOW}${LAST}${FIELDS}${LINES}${ADD}${SHELVE}${MOVE_ON}
local group = ARGV[1]
-- First what waits behind others, so that none of a key moves up only to be removed.
local members = call('ZRANGE', behind, 0, 999)
if #members > 0 then
  local waiting = {}
  for i, member in ipairs(members) do waiting[i] = string.sub(member, string.sub(member, 1, 4) + 36) end
  call('ZREM', behind, unpack(members))
  call('HDEL', parked, unpack(waiting))
  call('HDEL', ids, unpack(waiting))
  return #waiting
end
local waiting = call('ZRANGE', scheduled, 0, 999)
if #waiting > 0 then
  local packed = call('HMGET', parked, unpack(waiting))
  call('ZREM', scheduled, unpack(waiting))
  call('HDEL', parked, unpack(waiting))
  call('HDEL', ids, unpack(waiting))
  for i = 1, #waiting do
    local key = packed[i] and key_of(cmsgpack.unpack(packed[i]))
    if key then move_on(key) end
  end
  return #waiting
end
local lined = {}
for level = 0, level_count() - 1 do
  local start = 'p' .. level
  for _, member in ipairs(call('ZRANGE', fair, '[' .. start, '(' .. start .. ':', 'BYLEX', 'LIMIT', 0, 200)) do
    lined[#lined + 1] = string.sub(member, 25)
  end
end
for _, id in ipairs(lined) do
  local packed = call('HGET', parked, id)
  local fields = packed and cmsgpack.unpack(packed)
  leave_line(id, call('HGET', ids, id), fields)
  call('HDEL', ids, id)
  local key = fields and key_of(fields)
  if key then move_on(key) end
end
if #lined > 0 then return #lined end
for level = -1, level_count() - 1 do
  local stream = level < 0 and suspects or level_stream(level)
  local entries = call('XRANGE', stream, '(' .. last_read(stream, group), '+', 'COUNT', 200)
  for _, entry in ipairs(entries) do
    call('XDEL', stream, entry[1])
    call('HDEL', ids, id_of(entry[2], entry[1]))
    local key = key_of(entry[2])
    if key then move_on(key) end
  end
  if #entries > 0 then return #entries end
end
return 0
`

/**
 * ARGV: class or nothing, the place that the page begins behind, how many, bytes of bodies in all or nothing for no bodies. Answers
 * the letters, and ends with the first that has more, unless it is alone.
 */
export const LIST_DEAD: string = `${PRELUDE}${NOW}${SHELVE}
local index = dead
if ARGV[1] ~= '' then index = KEYS[CLASSES[ARGV[1]]] end
local out, bytes, most = {}, 0, tonumber(ARGV[4])
for _, member in ipairs(call('ZREVRANGEBYLEX', index, ARGV[2], '-', 'LIMIT', 0, ARGV[3])) do
  local packed = call('HGET', shelf, string.sub(member, 17))
  local letter = packed and cmsgpack.unpack(packed)
  if letter then
    for i = 5, #letter, 2 do
      if letter[i] == 'body' then
        if not most then letter[i + 1] = '' end
        bytes = bytes + #letter[i + 1]
      end
    end
    out[#out + 1] = letter
    if most and #out > 1 and bytes > most then break end
  end
end
return out
`

/** ARGV: class or nothing, the place that ends the count. */
export const COUNT_DEAD: string = `${PRELUDE}${NOW}${SHELVE}
local index = dead
if ARGV[1] ~= '' then index = KEYS[CLASSES[ARGV[1]]] end
return call('ZLEXCOUNT', index, '-', ARGV[2])
`

/** ARGV: id. */
export const GET_DEAD: string = `${PRELUDE}
local packed = call('HGET', shelf, ARGV[1])
return packed and cmsgpack.unpack(packed)
`

/** ARGV: act, actor, reason, then ids. Off the shelf, on record and, for a redrive, into the queue. Answers the ids. */
export const TAKE_DEAD: string = `${PRELUDE}
call('HDEL', meta, '')
${NOW}${RING}${CLAIMS}${FIELDS}${LINES}${ADD}${SHELVE}${MOVE_ON}
local act, moved = ARGV[1], {}
local function redriven(fields, id)
  local out = restated(fields, id, 1, 0)
  for _, name in ipairs({ 'at', 'records' }) do
    local value = field(fields, name)
    if value then
      out[#out + 1] = name
      out[#out + 1] = value
    end
  end
  out[#out + 1] = 'redrives'
  out[#out + 1] = whole(tonumber(field(fields, 'redrives') or '0') + 1)
  return out
end
for i = 4, #ARGV do
  local id = ARGV[i]
  local packed = call('HGET', shelf, id)
  if packed and not (act == 'redrive' and call('HEXISTS', ids, id) == 1) then
    local letter = cmsgpack.unpack(packed)
    local member = place(tonumber(letter[1]), id)
    call('ZREM', dead, member)
    call('ZREM', KEYS[CLASSES[letter[2]]], member)
    call('HDEL', shelf, id)
    local fields = { unpack(letter, 5) }
    local key = key_of(fields)
    if act == 'redrive' then
      fields = redriven(fields, id)
      -- To the front, where it halted its key.
      if not key or enter(key, id) then add(id, fields, false) else wait(key, id, fields, 0) end
    elseif key and halted_by(call('HGET', heads, key)) == id then
      advance(key)
    end
    call('XADD', audit, 'MAXLEN', '~', 100000, '*', 'at', whole(now), 'act', act, 'id', id, 'actor', ARGV[2], 'reason', ARGV[3])
    moved[#moved + 1] = id
  end
end
if #moved > 0 then ring() end
return moved
`

/** ARGV: how many. Newest first. */
export const AUDIT: string = `${PRELUDE}
return call('XREVRANGE', audit, '+', '-', 'COUNT', ARGV[1])
`
