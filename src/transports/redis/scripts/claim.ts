import { AGEING_MS } from '../../../transport/ageing.ts'
import { PRIORITY } from '../entry.ts'
import { LAST } from './admin.ts'
import { FAIR } from './fair.ts'
import { LINES, MOVE_ON } from './lines.ts'
import { ADD, CLAIMS, FIELDS, NOW, PRELUDE, RING, SHELVE } from './prelude.ts'

/**
 * Priorities with ageing, as `transport/ageing.ts` has them: the streams of the levels are lines, and an entry's id tells since when
 * it is ready. What is read of a line goes before the first one of every other line.
 */
const TAKE_TURNS = `${LAST}${FIELDS}${FAIR}${SHELVE}
local ageing = tonumber(queue[5] or '${AGEING_MS}')
local function look(line)
  if line.is_fair then
    -- It stands where its oldest stands, so that none in it waits for ever.
    local oldest = first_of('a' .. line.level)
    line.ready_at = oldest and tonumber(string.sub(oldest, 3, 17))
    return
  end
  local first = call('XRANGE', line.stream, '(' .. line.last, '+', 'COUNT', 1)[1]
  line.ready_at = first and tonumber(string.match(first[1], '^%d+'))
end
-- From the highest level down, so that of equal standing the higher goes first.
local function lines_of()
  local lines = {}
  for level = levels - 1, 0, -1 do
    local stream = level_stream(level)
    if call('XLEN', stream) > 0 then
      local mark, ending = '', ''
      if level > 0 then mark, ending = 'p' .. level, '^' .. level end
      local line = { level = level, mark = mark, name = claim .. ending, stream = stream, last = last_read(stream, group) }
      look(line)
      lines[#lines + 1] = line
    end
    if queue[6] then
      local line = { level = level, mark = 't', name = claim .. '~', is_fair = true }
      look(line)
      if line.ready_at then lines[#lines + 1] = line end
    end
  end
  return lines
end
-- Whose turn it is, and until which moment.
local function turn_of(lines)
  local first
  for _, line in ipairs(lines) do
    line.standing = line.ready_at and line.ready_at - line.level * ageing
    if line.standing and (not first or line.standing < first.standing) then first = line end
  end
  local until_at = math.huge
  for _, rival in ipairs(lines) do
    if first and rival ~= first and rival.ready_at then
      local lead = (first.level - rival.level) * ageing
      until_at = math.min(until_at, rival.ready_at + lead - (first.level > rival.level and 0 or 1))
    end
  end
  return first, until_at
end
local function give_turn(member)
  local id = string.sub(member, 25)
  local ref, packed = call('HGET', ids, id), call('HGET', parked, id)
  -- Somebody else's doing: nothing is known of it.
  if not ref then return call('ZREM', fair, member) end
  local fields = packed and cmsgpack.unpack(packed)
  leave_line(id, ref, fields)
  if fields then
    call('HSET', ids, id, 't' .. call('XADD', turns, '*', unpack(fields)))
  else
    call('HDEL', ids, id)
    shelve(id, bodiless(id), 'permanent', UNTURNED)
  end
end
-- The first ones in line go into the stream of turns, where they are read at once.
local function give_turns(level, count)
  -- Redis refuses XADD when its memory is full, unless something was written before.
  call('HDEL', meta, '')
  local start = 'p' .. level
  local members = call('ZRANGE', fair, '[' .. start, '(' .. start .. ':', 'BYLEX', 'LIMIT', 0, count)
  for _, member in ipairs(members) do give_turn(member) end
  if #members == 0 then call('ZREM', fair, first_of('a' .. level)) end
end
local max, lines, empty = tonumber(ARGV[3]), lines_of(), 0
-- What a script that failed half way put there.
if queue[6] and call('XLEN', turns) > 0 then read('t', claim .. '~', max) end
while n < max and empty < 10 do
  local line, until_at = turn_of(lines)
  if not line then break end
  local count, before = max - n, n
  -- Where no other line can have its turn before, all that is there may go.
  if line.is_fair then
    -- Its oldest says where it stands, and need not be its first: so one by one.
    give_turns(line.level, until_at < now and 1 or count)
  elseif until_at < now then
    count = #call('XRANGE', line.stream, '(' .. line.last, whole(until_at), 'COUNT', count)
  end
  local last = read(line.mark, line.name, count)
  if last or line.is_fair then
    line.last = last
    look(line)
  else
    line.ready_at = nil
  end
  if n == before then empty, unlined = empty + 1, unlined or last end
end
`

/**
 * ARGV: group, name of the new claim, how many at most, lease in ms, 1 when the caller would wait, 1 when the group may be
 * made. Answers first what it is: -1 no such queue; -2 no group, which may not be made; 1 leases ran out, reclaim first; 0
 * nothing, the ms until something falls due (-1: never), how many messages have no entry any more (0 or less: none), and how
 * many wait behind others of their keys; 2 messages, 3 one suspect or 4 messages of a queue with levels: the fence, all references
 * (as in \`ids\`) and all ids, each a line, and for each message its body, or all its fields and an empty line for an id.
 *
 * Delayed messages that fell due are moved first. A claim is a consumer of the group, one for each batch that is received
 * together: its list of pending entries is the claim, and its lease is one member of \`claims\`, so that a message costs
 * no write of ours when it is handed out.
 */
export const CLAIM: string = `${PRELUDE}
local queue = call('HMGET', meta, 'layout', 'paused', 'fence', 'levels', 'ageingMs', 'fair')
if not is_known(queue[1]) then return { -1 } end
${NOW}${RING}
if #call('ZRANGEBYSCORE', claims, '-inf', whole(now), 'LIMIT', 0, 1) > 0 then return { 1 } end
local group, claim, levels = ARGV[1], ARGV[2], tonumber(queue[4] or '1')

local due = call('ZRANGEBYSCORE', scheduled, '-inf', whole(now), 'LIMIT', 0, 500)
if #due > 0 then
  ${FIELDS}${ADD}${SHELVE}
  for _, id in ipairs(due) do
    call('ZREM', scheduled, id)
    local packed = call('HGET', parked, id)
    call('HDEL', parked, id)
    if packed then
      local fields = cmsgpack.unpack(packed)
      add(id, fields, field(fields, 'alone'))
    else
      call('HDEL', ids, id)
      shelve(id, bodiless(id), 'permanent', LOST)
    end
  end
  ring()
end

-- All that was read has to wait, and there may be more.
local unlined = false
local function nothing()
  if ARGV[5] == '1' then call('HSET', meta, 'waiting', '1') end
  -- More ids than messages: entries are gone that nobody had. Foreign entries have no id before they are read.
  local behind = call('ZCARD', KEYS[16])
  local gone = call('HLEN', ids) - call('XLEN', suspects) - call('ZCARD', scheduled) - behind
  for level = 0, levels - 1 do gone = gone - call('XLEN', level_stream(level)) end
  if queue[6] then gone = gone - call('ZLEXCOUNT', KEYS[27], '[p', '(q') - call('XLEN', KEYS[28]) end
  if #due == 500 or unlined then return { 0, 0, gone, behind } end
  local next_at = math.huge
  for _, key in ipairs({ scheduled, claims }) do
    local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if first[2] then next_at = math.min(next_at, tonumber(first[2])) end
  end
  if next_at == math.huge then return { 0, -1, gone, behind } end
  return { 0, math.max(0, math.ceil(next_at - now)), gone, behind }
end

local missing = false
local function take(stream, name, count)
  local read = redis.pcall('XREADGROUP', 'GROUP', group, name, 'COUNT', count, 'STREAMS', stream, '>')
  if read and read.err then
    -- Somebody deleted the stream or its group, or nobody made it yet. Those of suspects and levels are ours alone.
    missing = stream == ready and ARGV[6] ~= '1'
    if missing then return end
    redis.pcall('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
    read = call('XREADGROUP', 'GROUP', group, name, 'COUNT', count, 'STREAMS', stream, '>')
  end
  return read and read[1][2]
end

local line_up
-- False for what has to wait behind another one of its key, which does so now: what another producer wrote, or a version without lines.
local function has_turn(mark, stream, entry_id, fields)
  if not line_up then
    ${FIELDS}${LINES}
    line_up = function(mark, stream, entry_id, fields)
      local key, id = key_of(fields), id_of(fields, entry_id)
      if key and call('HGET', heads, key) == 'h' .. id then return true end
      local here = mark .. entry_id
      -- Of another producer: its entry id is its id.
      local ref = id ~= entry_id and call('HGET', ids, id)
      if not ref and (key or id == entry_id) then call('HSET', ids, id, here) end
      -- An id that stands somewhere else, too, is another producer's doing, and in no line.
      if not key or ref and ref ~= here or enter(key, id) then return true end
      call('XACK', stream, group, entry_id)
      call('XDEL', stream, entry_id)
      wait(key, id, as_it_was(fields, id, entry_id, 0), 0)
      return false
    end
  end
  return line_up(mark, stream, entry_id, fields)
end

local out, refs, names, n = { 2, '', '', '' }, {}, {}, 0
-- The claims of this receive, one for each stream that it asked.
local asked = {}
-- Answers the last entry that was read, which may not be handed out; nothing where there was none.
local function read(mark, name, count)
  local stream, before = place_of(mark), n
  local entries = take(stream, name, count)
  for _, entry in ipairs(entries or {}) do
    local fields = entry[2]
    local size = fields[1] == 'id' and fields[3] == 'body' and #fields
    local is_plain = size == 4
    local has_level = size and size > 4 and fields[5] == '${PRIORITY}'
    local is_new = is_plain or size == 6 and (has_level or fields[5] == 'headers') or size == 8 and has_level and fields[7] == 'headers'
    if is_new or has_turn(mark, stream, entry[1], fields) then
      n = n + 1
      refs[n] = mark .. entry[1]
      names[n] = is_plain and fields[2] or ''
      out[n + 4] = is_plain and fields[4] or fields
    end
  end
  asked[name] = { stream = stream, has_some = n > before or asked[name] and asked[name].has_some }
  return entries and entries[#entries][1]
end
local function hand_out(mark, name, count)
  for _ = 1, 10 do
    if not read(mark, name, count) or n > 0 then return end
    unlined = true
  end
end

if queue[2] then return nothing() end
if call('XLEN', suspects) > 0 then
  hand_out('s', claim .. '!', 1)
  if n > 0 then out[1] = 3 end
end
if n == 0 and (levels > 1 or queue[6]) then
  ${TAKE_TURNS}
  if n > 0 then out[1] = 4 end
end
if n == 0 then hand_out('', claim, ARGV[3]) end
for name, one in pairs(asked) do
  -- Some versions make the consumer although there is nothing for it.
  if not one.has_some then redis.pcall('XGROUP', 'DELCONSUMER', one.stream, group, name) end
end
if n == 0 then return missing and { -2 } or nothing() end

-- Grows with each batch, also after a failover that lost the last ones.
local fence = whole(math.max(tonumber(queue[3] or '0') + 1, clock[1] * 1000000 + clock[2]))
call('HSET', meta, 'fence', fence)
for name, one in pairs(asked) do
  if one.has_some then call('ZADD', claims, whole(now + ARGV[4]), name) end
end
out[2] = fence
-- Two texts for all: as items of the answer they cost both sides 0.5 µs a message more.
out[3], out[4] = table.concat(refs, '\\n'), table.concat(names, '\\n')
return out
`

/**
 * ARGV: group, cursor. Looks at a step of all ids and puts those on the shelf whose entry is gone though nobody has it: what a
 * worker has is found at the end of its lease. Answers the next cursor, and how many.
 */
export const BURY_GONE: string = `${PRELUDE}${NOW}${FIELDS}${FAIR}${LINES}${SHELVE}
local page, buried = call('HSCAN', ids, ARGV[2], 'COUNT', 500), 0
for i = 1, #page[2], 2 do
  local id, ref = page[2][i], page[2][i + 1]
  local stream, entry_id = place_of(ref)
  if ref == 'z' then
    if not call('ZSCORE', scheduled, id) then
      local packed = call('HGET', parked, id)
      call('HDEL', parked, id)
      call('HDEL', ids, id)
      shelve(id, packed and cmsgpack.unpack(packed) or bodiless(id), 'permanent', packed and UNTIMED or GONE)
      buried = buried + 1
    end
  elseif string.sub(ref, 1, 1) == 'f' then
    local packed = call('HGET', parked, id)
    local member = 'p' .. string.sub(ref, 2, 2) .. string.sub(ref, 18) .. id
    if not (packed and call('ZSCORE', fair, member)) then
      local fields = packed and cmsgpack.unpack(packed)
      leave_line(id, ref, fields)
      call('HDEL', ids, id)
      shelve(id, fields or bodiless(id), 'permanent', UNTURNED)
      buried = buried + 1
    end
  elseif string.sub(ref, 1, 1) == 'b' then
    local packed = call('HGET', parked, id)
    local fields = packed and cmsgpack.unpack(packed)
    local key = fields and key_of(fields)
    if not (key and call('ZSCORE', behind, line_of(key) .. string.sub(ref, 2) .. id)) then
      call('HDEL', parked, id)
      call('HDEL', ids, id)
      shelve(id, fields or bodiless(id), 'permanent', WAITED)
      buried = buried + 1
    end
  elseif #call('XRANGE', stream, entry_id, entry_id) == 0 then
    local held = redis.pcall('XPENDING', stream, ARGV[1], entry_id, entry_id, 1)
    if held.err or #held == 0 then
      call('HDEL', ids, id)
      shelve(id, bodiless(id), 'permanent', GONE)
      buried = buried + 1
    end
  end
end
return { page[1], buried }
`

/**
 * ARGV: cursor. Looks at a step of all ordering keys and lets those go on whose head is gone although no act of ours ended it.
 * Answers the next cursor, and how many.
 */
export const MEND: string = `${PRELUDE}${NOW}${RING}${FIELDS}${LINES}${ADD}${SHELVE}${MOVE_ON}
local page, moved = call('HSCAN', heads, ARGV[1], 'COUNT', 500), 0
for i = 1, #page[2], 2 do
  if move_on(page[2][i]) then moved = moved + 1 end
end
if moved > 0 then ring() end
return { page[1], moved }
`

/** ARGV: group. Answers the server's time, then claim, entry id and fields (false: gone) of up to 100 of each expired claim. */
export const EXPIRED: string = `${PRELUDE}${NOW}${CLAIMS}
local out = { whole(now) }
for _, claim in ipairs(call('ZRANGEBYSCORE', claims, '-inf', whole(now), 'LIMIT', 0, 10)) do
  local stream = stream_of(claim)
  local held = pending_of(claim, ARGV[1], 100)
  if #held == 0 then end_if_empty(claim, ARGV[1]) end
  for _, one in ipairs(held) do
    local entry = call('XRANGE', stream, one[1], one[1])[1]
    out[#out + 1] = claim
    out[#out + 1] = one[1]
    out[#out + 1] = entry and entry[2] or false
  end
end
return out
`

/**
 * ARGV: group, then for each message claim, entry id, id, the number of its new state's fields and they. What was renewed
 * or settled since it was looked at is left alone: an entry id stands for one handing out. Answers how many came back.
 */
export const RECLAIM: string = `${PRELUDE}
-- Redis refuses the writes below when its memory is full, unless something was written before.
call('HDEL', meta, '')
${NOW}${RING}${CLAIMS}${FIELDS}${ADD}${SHELVE}
local group, back, touched = ARGV[1], 0, {}
local i = 2
while i <= #ARGV do
  local claim, entry_id, id = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local last = i + 3 + tonumber(ARGV[i + 3])
  local until_at = call('ZSCORE', claims, claim)
  local stream = stream_of(claim)
  if until_at and tonumber(until_at) <= now and call('XACK', stream, group, entry_id) == 1 then
    local entry = call('XRANGE', stream, entry_id, entry_id)[1]
    call('XDEL', stream, entry_id)
    if entry then
      add(id, restated(entry[2], id, i + 4, last), true)
    else
      call('HDEL', ids, id)
      shelve(id, restated(bodiless(id), id, i + 4, last), 'permanent', LOST)
    end
    touched[claim] = true
    back = back + 1
  end
  i = last + 1
end
for claim in pairs(touched) do end_if_empty(claim, group) end
if back > 0 then ring() end
return back
`
