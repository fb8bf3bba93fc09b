import { FAIR_KEY, PRIORITY } from '../entry.ts'
import { FAIR } from './fair.ts'

/**
 * The keys of the queue; see `keys.ts`. Behind them stand the indexes of the dead letters, one per class, what `LINES` needs, and from
 * 18 on the streams of the levels above 0.
 */
export const PRELUDE = `
local call = redis.call
local meta, ready, suspects, claims, ids, scheduled, parked, shelf, dead, audit = unpack(KEYS, 1, 10)
-- 2 where keys stand in lines, 3 where there are levels, too. A queue that a newer version laid out otherwise is none for this one.
local function is_known(layout) return layout == '1' or layout == '2' or layout == '3' end
local function level_stream(level) return level > 0 and KEYS[17 + level] or ready end
-- The stream that a reference of \`ids\` points into, and its entry: \`s\` stands before one of suspects, \`p\` and a digit before one
-- of a level above 0, \`t\` before one that has a fair key and was handed out. The mark alone names the stream.
local function place_of(ref)
  local mark = string.sub(ref, 1, 1)
  if mark == 's' then return suspects, string.sub(ref, 2) end
  if mark == 't' then return KEYS[28], string.sub(ref, 2) end
  if mark == 'p' then return level_stream(tonumber(string.sub(ref, 2, 2))), string.sub(ref, 3) end
  return ready, ref
end
`

/** The server's clock: epoch ms in `now`. */
export const NOW = `
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function whole(number) return string.format('%.0f', number) end
`

/** Wakes the receives that found nothing; costs one lookup while nobody waits. */
export const RING = `
local function ring()
  if call('HDEL', meta, 'waiting') == 1 then
    redis.pcall('PUBLISH', string.sub(meta, 1, -5) .. 'news', '')
  end
end
`

/** Where a claim's messages are: one of suspects ends with an exclamation mark, one of a level above 0 with a caret and the level, one of fair keys with a tilde. */
export const CLAIMS = `
local function ending_of(claim) return string.match(claim, '[!~]$') or string.match(claim, '%^%d$') or '' end
local function stream_of(claim)
  local ending = ending_of(claim)
  if ending == '' then return ready end
  if ending == '~' then return KEYS[28] end
  return ending == '!' and suspects or level_stream(tonumber(string.sub(ending, 2)))
end
-- Nothing where somebody deleted the stream or its group: the next receive makes them again.
local function pending_of(claim, group, count)
  local held = redis.pcall('XPENDING', stream_of(claim), group, '-', '+', count, claim)
  if held.err then return {} end
  return held
end
local function end_if_empty(claim, group)
  if #pending_of(claim, group, 1) == 0 then
    redis.pcall('XGROUP', 'DELCONSUMER', stream_of(claim), group, claim)
    call('ZREM', claims, claim)
  end
end
`

/**
 * Fields of an entry. With `id` and `body` it is a message as we write it, and what is known of its attempts stands behind
 * them; without `body` it is another producer's, whose fields are all payload, whatever they are called, an `id` too. Once it
 * was handed out its payload is a body, as `entryOf` reads it: what we write beside it could be taken for its fields, and they for ours.
 */
export const FIELDS: string = `
local STATE = { at = 1, deliveries = 1, counted = 1, crashes = 1, throttledSince = 1, redrives = 1, records = 1, alone = 1 }
local function field(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
end
local function id_of(fields, entry_id)
  if fields[1] == 'id' and fields[3] == 'body' then return fields[2] end
  return field(fields, 'body') and field(fields, 'id') or entry_id
end
-- Of priority.
local function level_of(fields)
  return tonumber(string.match(field(fields, 'body') and field(fields, '${PRIORITY}') or '', '^%d$') or '0')
end
-- Of an entry that is gone.
local function bodiless(id) return { 'id', id, 'body', '' } end
local function json(fields)
  local parts = {}
  for i = 1, #fields, 2 do parts[#parts + 1] = cjson.encode(fields[i]) .. ':' .. cjson.encode(fields[i + 1]) end
  return '{' .. table.concat(parts, ',') .. '}'
end
-- What was sent stays, what is known of its attempts is replaced by ARGV[first..last].
local function restated(fields, id, first, last)
  local body = field(fields, 'body')
  local out = { 'id', id, 'body', body or json(fields) }
  for i = 1, body and #fields or 0, 2 do
    local name = fields[i]
    if name ~= 'id' and name ~= 'body' and not STATE[name] then
      out[#out + 1] = name
      out[#out + 1] = fields[i + 1]
    end
  end
  for i = first, last do out[#out + 1] = ARGV[i] end
  return out
end
-- With what is known of its attempts, and more handings out.
local function as_it_was(fields, id, entry_id, more)
  local out = restated(fields, id, 1, 0)
  -- Of fields that are payload none is ours.
  local state = field(fields, 'body') and fields or {}
  for name in pairs(STATE) do
    local value = field(state, name)
    if name == 'deliveries' and (value or more > 0) then value = string.format('%.0f', tonumber(value or '0') + more) end
    if name == 'at' then value = value or string.match(entry_id, '^%d+') end
    if value then
      out[#out + 1] = name
      out[#out + 1] = value
    end
  end
  return out
end
`

/**
 * The queue has `levels` or `fair` keys from now on. A version that knows neither looks for the owner, or for a layout that it knows: it
 * finds no queue then, instead of a part of one.
 */
export const RAISE = `
local raised = {}
local function raise(name, value)
  if (raised[name] or 0) >= value then return end
  raised[name] = value
  local is = call('HMGET', meta, 'layout', name, 'owner')
  local known = tonumber(is[2] or '0')
  if is[1] == '3' and known >= value then return end
  call('HSET', meta, 'layout', '3', name, math.max(known, value))
  if is[3] then
    call('HSET', meta, 'keeper', is[3])
    call('HDEL', meta, 'owner')
  end
end
`

/** A new entry of the stream that the message belongs to, or a place in the line of fair keys; `ids` says where it is. Needs FIELDS, but for `park`. */
export const ADD: string = `${RAISE}${FAIR}
local function add(id, fields, alone)
  local mark, level = '', level_of(fields)
  if level > 0 then
    raise('levels', level + 1)
    mark = 'p' .. level
  end
  local key = field(fields, 'body') and field(fields, '${FAIR_KEY}')
  if key and not alone then
    raise('fair', 1)
    return line_up_share(id, fields, level, key, weight_of(fields))
  end
  if alone then mark = 's' end
  call('HSET', ids, id, mark .. call('XADD', place_of(mark), '*', unpack(fields)))
end
local function park(id, fields, ready_at)
  call('ZADD', scheduled, whole(ready_at), id)
  call('HSET', parked, id, cmsgpack.pack(fields))
  call('HSET', ids, id, 'z')
end
`

/** Onto the shelf; its order is that of the members: by time of death, then by id. */
export const SHELVE = `
local CLASSES = { transient = 11, permanent = 12, throttled = 13, crashed = 14 }
local function place(dead_at, id) return string.format('%015.0f:%s', dead_at, id) end
local function shelve(id, fields, class, reason)
  if call('HEXISTS', shelf, id) == 1 then return end
  local owner = call('HMGET', meta, 'owner', 'keeper')
  local letter = { whole(now), class, reason, owner[1] or owner[2] or '' }
  for i = 1, #fields do letter[i + 4] = fields[i] end
  call('HSET', shelf, id, cmsgpack.pack(letter))
  call('ZADD', dead, 0, place(now, id))
  call('ZADD', KEYS[CLASSES[class]], 0, place(now, id))
end
local LOST = 'body lost: its entry was deleted or trimmed by somebody while a worker held it'
local GONE = 'body lost: its entry was deleted or trimmed by somebody before a worker had it'
local UNTIMED = 'when it was due was deleted by somebody'
local UNTURNED = 'body lost: it was deleted by somebody while it waited for its turn'
local WAITED = 'body lost: it was deleted by somebody while it waited behind an earlier message of its key'
`
