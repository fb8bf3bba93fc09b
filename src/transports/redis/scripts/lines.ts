/**
 * Of each ordering key one message is the head: it alone stands in a stream, is in flight, or waits for its moment. `heads` says
 * which, or which dead one halted the key: `h` and its id, or `x`, when that was (15 digits) and its id. The others are in
 * `behind`, one sorted set for all keys whose scores are equal, so that it is sorted by its members: the length of the key (4
 * digits) and the key, the turn of the message (16), when it is due or nothing (15), its id. The length keeps one key from being the
 * beginning of another one. Nothing is left of a key without messages. Needs FIELDS.
 */
export const LINES = `
local heads, behind, halted = unpack(KEYS, 15, 17)
-- None where it is longer than a send may give.
local function key_of(fields)
  local key = field(fields, 'body') and field(fields, 'orderingKey')
  return key and #key <= 2000 and key
end
local function line_of(key) return string.format('%04.0f', #key) .. key end
-- Behind the line stand digits; a colon comes after all of them.
local function bounds_of(key) return '[' .. line_of(key), '(' .. line_of(key) .. ':' end
-- The dead message that halts a key, by what heads says.
local function halted_by(head)
  return head and string.sub(head, 1, 1) == 'x' and string.sub(head, 17)
end
-- A version that knows no lines looks for the owner: it finds no queue from now on, instead of handing out what has to wait.
local marked = false
local function mark()
  local layout = not marked and call('HGET', meta, 'layout')
  if layout and layout ~= '2' and layout ~= '3' then
    call('HSET', meta, 'layout', '2', 'keeper', call('HGET', meta, 'owner') or '')
    call('HDEL', meta, 'owner')
  end
  marked = true
end
-- True when it is the head of its key now, or was already; else it has to wait.
local function enter(key, id)
  local head = call('HGET', heads, key)
  if head == 'h' .. id then return true end
  if head and halted_by(head) ~= id then return false end
  mark()
  call('HSET', heads, key, 'h' .. id)
  if head then call('ZREM', halted, key) end
  return true
end
-- The turn goes by the clock, too, so that it still grows when the last one was lost.
local function wait(key, id, fields, ready_at)
  local turn = math.max(tonumber(call('HGET', meta, 'turn') or '0') + 1, clock[1] * 1000000 + clock[2])
  call('HSET', meta, 'turn', whole(turn))
  local place = string.format('%016.0f%015.0f', turn, ready_at)
  call('ZADD', behind, 0, line_of(key) .. place .. id)
  call('HSET', parked, id, cmsgpack.pack(fields))
  call('HSET', ids, id, 'b' .. place)
end
`

/** How a key goes on. Needs LINES, ADD and SHELVE. */
export const MOVE_ON = `
local function halts() return call('HGET', meta, 'onDead') == 'halt-key' end
local function halt(key, id)
  call('HSET', heads, key, 'x' .. string.format('%015.0f', now) .. id)
  call('ZADD', halted, 0, key)
end
local function advance(key)
  local from, to = bounds_of(key)
  call('ZREM', halted, key)
  while true do
    local first = call('ZRANGE', behind, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then return call('HDEL', heads, key) end
    call('ZREM', behind, first)
    local at = #line_of(key)
    local ready_at, id = string.sub(first, at + 17, at + 31), string.sub(first, at + 32)
    local packed = call('HGET', parked, id)
    if packed then
      call('HSET', heads, key, 'h' .. id)
      local fields = cmsgpack.unpack(packed)
      if tonumber(ready_at) > now then return park(id, fields, tonumber(ready_at)) end
      call('HDEL', parked, id)
      return add(id, fields, field(fields, 'alone'))
    end
    call('HDEL', ids, id)
    shelve(id, bodiless(id), 'permanent', WAITED)
    if halts() then return halt(key, id) end
  end
end
-- The next one follows where the head has no id any more: it has ended. Where it died it may halt its key instead.
local function move_on(key)
  local head = call('HGET', heads, key)
  if not head or halted_by(head) then return false end
  local id = string.sub(head, 2)
  if call('HEXISTS', ids, id) == 1 then return false end
  if call('HEXISTS', shelf, id) == 1 and halts() then halt(key, id) else advance(key) end
  return true
end
`
