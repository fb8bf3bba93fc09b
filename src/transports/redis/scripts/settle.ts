import { LINES, MOVE_ON } from './lines.ts'
import { ADD, CLAIMS, FIELDS, NOW, PRELUDE, RING, SHELVE } from './prelude.ts'

/**
 * Removes what was just acked by cutting the stream's head off: to find each entry by itself costs the server 1.9 µs, this 0.2. Only
 * where the counts say that there is nothing else to cut: all that was delivered and is still there is pending or was just
 * acked. False where they do not (another group, deleted entries, Redis 6.2, a user without XTRIM), or older ones stand before them.
 */
const TRIM = `
local function trimmed(stream, group, count)
  local groups = redis.pcall('XINFO', 'GROUPS', stream)
  if groups.err or #groups ~= 1 then return false end
  local is = {}
  for i = 1, #groups[1], 2 do is[groups[1][i]] = groups[1][i + 1] end
  local pending, lag = is['pending'], is['lag']
  if not lag or call('XLEN', stream) - lag - pending ~= count then return false end
  local from
  if pending == 0 then
    local ms, seq = string.match(is['last-delivered-id'], '^(%d+)-(%d+)$')
    if not seq or #seq > 15 then return false end
    from = ms .. '-' .. string.format('%.0f', seq + 1)
  else
    from = call('XPENDING', stream, group, '-', '+', 1)[1][1]
  end
  return redis.pcall('XTRIM', stream, 'MINID', from) == count
end
`

/**
 * ARGV: group; the number of streams and of each its mark in references, the number of entries, their entry ids, their ids; the
 * number of their ordering keys and these; the claims they are of. Answers 1 when all were ours, else for each entry 1 or 0.
 *
 * An entry is read once in its life: whatever gives a message back makes a new one. So an entry that is pending is the
 * handing out that the caller means, and nothing else needs to be compared.
 */
export const ACK: string = `${PRELUDE}${CLAIMS}${TRIM}
local group, out, all = ARGV[1], {}, true
local function ack(mark, first, count)
  local stream, last = place_of(mark), first + count - 1
  if call('XACK', stream, group, unpack(ARGV, first, last)) == count then
    call('HDEL', ids, unpack(ARGV, last + 1, last + count))
    for i = 1, count do out[#out + 1] = 1 end
    if count >= 16 and trimmed(stream, group, count) then return end
  else
    all = false
    for i = first, last do
      local ours = call('HGET', ids, ARGV[i + count]) == mark .. ARGV[i]
      if ours then call('HDEL', ids, ARGV[i + count]) end
      out[#out + 1] = ours and 1 or 0
    end
  end
  call('XDEL', stream, unpack(ARGV, first, last))
end
local at = 3
for _ = 1, ARGV[2] do
  local count = tonumber(ARGV[at + 1])
  ack(ARGV[at], at + 2, count)
  at = at + 2 + 2 * count
end
local keys = tonumber(ARGV[at])
if keys > 0 then
  ${NOW}${RING}${FIELDS}${LINES}${ADD}${SHELVE}${MOVE_ON}
  local moved = false
  for i = at + 1, at + keys do moved = move_on(ARGV[i]) or moved end
  if moved then ring() end
end
for i = at + 1 + keys, #ARGV do end_if_empty(ARGV[i], group) end
if all then return 1 end
return out
`

/**
 * ARGV: group, then for each message claim, entry id, id, delay in ms, 1 for alone, the number of its new state's fields
 * and they. Answers for each 1 or 0 (no longer ours).
 */
export const RELEASE: string = `${PRELUDE}${NOW}${RING}${CLAIMS}${FIELDS}${ADD}${SHELVE}
local group, out, touched = ARGV[1], {}, {}
local i = 2
while i <= #ARGV do
  local claim, entry_id, id = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local last = i + 5 + tonumber(ARGV[i + 5])
  local stream = stream_of(claim)
  touched[claim] = true
  if call('XACK', stream, group, entry_id) == 1 then
    local entry = call('XRANGE', stream, entry_id, entry_id)[1]
    local fields = restated(entry and entry[2] or bodiless(id), id, i + 6, last)
    call('XDEL', stream, entry_id)
    local delay = tonumber(ARGV[i + 3])
    if not entry then
      call('HDEL', ids, id)
      shelve(id, fields, 'permanent', LOST)
    elseif delay > 0 then
      park(id, fields, now + delay)
    else
      add(id, fields, ARGV[i + 4] == '1')
    end
    out[#out + 1] = 1
  else
    out[#out + 1] = 0
  end
  i = last + 1
end
for claim in pairs(touched) do end_if_empty(claim, group) end
ring()
return out
`

/** ARGV: group, then for each message claim, entry id, id, class, reason, the number of its state's fields and they. */
export const BURY: string = `${PRELUDE}${NOW}${RING}${CLAIMS}${FIELDS}${LINES}${ADD}${SHELVE}${MOVE_ON}
local group, out, touched, moved = ARGV[1], {}, {}, false
local i = 2
while i <= #ARGV do
  local claim, entry_id, id = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local last = i + 5 + tonumber(ARGV[i + 5])
  local stream = stream_of(claim)
  touched[claim] = true
  if call('XACK', stream, group, entry_id) == 1 then
    local entry = call('XRANGE', stream, entry_id, entry_id)[1]
    local reason = ARGV[i + 4]
    if not entry then reason = LOST .. '; ' .. reason end
    call('XDEL', stream, entry_id)
    call('HDEL', ids, id)
    local fields = restated(entry and entry[2] or bodiless(id), id, i + 6, last)
    shelve(id, fields, ARGV[i + 3], reason)
    local key = key_of(fields)
    if key then moved = move_on(key) or moved end
    out[#out + 1] = 1
  else
    out[#out + 1] = 0
  end
  i = last + 1
end
for claim in pairs(touched) do end_if_empty(claim, group) end
if moved then ring() end
return out
`

/**
 * ARGV: group, lease in ms, a name for a new claim, then for each message claim and entry id. Answers for each 0 (no longer
 * ours), 1, or 2 when it moved to the new claim, because others of its batch were not renewed.
 */
export const RENEW: string = `${PRELUDE}
-- Redis refuses ZADD when its memory is full, unless something was written before.
call('HDEL', meta, '')
${NOW}${CLAIMS}
local group, until_at, fresh = ARGV[1], whole(now + ARGV[2]), ARGV[3]
local out, of = {}, {}
for i = 4, #ARGV, 2 do
  local claim = ARGV[i]
  of[claim] = of[claim] or {}
  table.insert(of[claim], i)
  out[(i - 2) / 2] = 0
end
for claim, places in pairs(of) do
  local stream = stream_of(claim)
  local pending, count = {}, 0
  for _, one in ipairs(pending_of(claim, group, 1001)) do
    pending[one[1]] = true
    count = count + 1
  end
  local held = {}
  for _, i in ipairs(places) do
    if pending[ARGV[i + 1]] then held[#held + 1] = i end
  end
  local answer, name = 1, claim
  if #held > 0 and #held < count then
    answer, name = 2, fresh .. ending_of(claim)
    local moved = {}
    for _, i in ipairs(held) do moved[#moved + 1] = ARGV[i + 1] end
    moved[#moved + 1] = 'JUSTID'
    call('XCLAIM', stream, group, name, 0, unpack(moved))
  end
  for _, i in ipairs(held) do out[(i - 2) / 2] = answer end
  if #held > 0 then call('ZADD', claims, until_at, name) end
end
return out
`

/**
 * ARGV: group, then claims of which the holder lets go: what is in them comes back as it was, uncounted. Also for a claim
 * whose answer never arrived.
 */
export const LET_GO: string = `${PRELUDE}
call('HDEL', meta, '')
${NOW}${RING}${CLAIMS}${FIELDS}${ADD}${SHELVE}
local group, back = ARGV[1], 0
for i = 2, #ARGV do
  local claim = ARGV[i]
  local stream = stream_of(claim)
  for _, one in ipairs(pending_of(claim, group, 1000)) do
    local entry_id = one[1]
    local entry = call('XRANGE', stream, entry_id, entry_id)[1]
    -- Without an entry it is left for the reclaim, which knows what to do.
    if entry then
      call('XACK', stream, group, entry_id)
      call('XDEL', stream, entry_id)
      local fields = entry[2]
      local id = id_of(fields, entry_id)
      add(id, as_it_was(fields, id, entry_id, 1), stream == suspects)
      back = back + 1
    end
  end
  end_if_empty(claim, group)
end
if back > 0 then ring() end
return back
`
