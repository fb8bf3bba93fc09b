/** Every script of the store, once. A script runs alone on its server, so none needs a lock. */

/** The server's clock: epoch ms in `now`, with its fractions in `exact`. */
const NOW = `
local call = redis.call
local clock = call('TIME')
local exact = clock[1] * 1000 + clock[2] / 1000
local now = math.floor(exact)
local function whole(number) return string.format('%.0f', number) end
`

const HELD = `
local call = redis.call
local function held_by(key)
  local packed = call('GET', key)
  return packed and cmsgpack.unpack(packed)
end
local function hold(key, confirmed, id, fingerprint, ms)
  call('SET', key, cmsgpack.pack({ confirmed, id, fingerprint }), 'PX', ms)
end
`

/**
 * KEYS: all keys of the messages. ARGV: hold in ms; then for each message its id, the number of its keys, and for each of them
 * kind and fingerprint. Answers for each message nothing, or why not and who holds it: 1 and 3 duplicate, 2 conflict, 4 held
 * (see `reservationOf`).
 */
export const RESERVE: string = `${HELD}
local function standing(held, id, kind, fingerprint)
  if held[1] == 0 then return held[2] ~= id and 4 or 5 end
  if held[2] == id then return 1 end
  return kind == 'idempotency' and held[3] ~= fingerprint and 2 or 3
end
local out, at, first = {}, 2, 1
while at <= #ARGV do
  local id, count = ARGV[at], tonumber(ARGV[at + 1])
  local reason, holder = 5, ''
  for i = 0, count - 1 do
    local held = held_by(KEYS[first + i])
    local here = held and standing(held, id, ARGV[at + 2 + 2 * i], ARGV[at + 3 + 2 * i]) or 5
    if here < reason then reason, holder = here, held[2] end
  end
  if reason == 5 then
    for i = 0, count - 1 do hold(KEYS[first + i], 0, id, ARGV[at + 3 + 2 * i], ARGV[1]) end
  end
  out[#out + 1] = reason == 5 and '' or reason .. holder
  at, first = at + 2 + 2 * count, first + count
end
return out
`

/** KEYS: keys. ARGV: for each of them id, fingerprint, window in ms. */
export const CONFIRM: string = `${HELD}
for i = 1, #KEYS do
  local held = held_by(KEYS[i])
  if not (held and held[1] == 1) then hold(KEYS[i], 1, ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]) end
end
`

/** KEYS: keys. ARGV: for each of them the id. */
export const FREE: string = `${HELD}
for i = 1, #KEYS do
  local held = held_by(KEYS[i])
  if held and held[1] == 0 and held[2] == ARGV[i] then call('DEL', KEYS[i]) end
end
`

/**
 * KEYS of all on delayed messages: open (by the moment from which one can be taken), places (`place:due:taken`), messages (body and
 * the rest, packed), the last place.
 */
const DELAYED = `
local open, places, messages, last = unpack(KEYS)
local function place_of(id)
  local text = call('HGET', places, id)
  if text then return string.match(text, '^(%d+):(%d+):(%d)$') end
end
local function remove(id)
  call('HDEL', places, id)
  call('HDEL', messages, id)
  return call('ZREM', open, id)
end
`

/** ARGV: for each message id, delay in ms, the rest as text, body. */
export const PUT_DELAYED: string = `${NOW}${DELAYED}
for i = 1, #ARGV, 4 do
  local id, due = ARGV[i], whole(now + ARGV[i + 1])
  local _, _, taken = place_of(id)
  if taken ~= '0' then
    call('HSET', places, id, whole(call('INCR', last)) .. ':' .. due .. ':0')
    call('HSET', messages, id, cmsgpack.pack({ ARGV[i + 2], ARGV[i + 3] }))
    call('ZADD', open, due, id)
  end
end
`

/** ARGV: most, lease in ms. Answers place, id, moment, the rest as text and body of each. */
export const TAKE_DELAYED: string = `${NOW}${DELAYED}
local out = {}
for _, id in ipairs(call('ZRANGEBYSCORE', open, '-inf', whole(now), 'LIMIT', 0, ARGV[1])) do
  local place, due = place_of(id)
  call('ZADD', open, whole(now + ARGV[2]), id)
  call('HSET', places, id, place .. ':' .. due .. ':1')
  local message = cmsgpack.unpack(call('HGET', messages, id))
  out[#out + 1] = { place, id, due, message[1], message[2] }
end
return out
`

/** ARGV: for each message id and place. */
export const REMOVE_SENT: string = `
local call = redis.call
${DELAYED}
for i = 1, #ARGV, 2 do
  if place_of(ARGV[i]) == ARGV[i + 1] then remove(ARGV[i]) end
end
`

/** ARGV: ids. Answers those that were there. */
export const REMOVE_DELAYED: string = `
local call = redis.call
${DELAYED}
local gone = {}
for _, id in ipairs(ARGV) do
  if remove(id) == 1 then gone[#gone + 1] = id end
end
return gone
`

/** ARGV: id. */
export const GET_DELAYED: string = `
local call = redis.call
${DELAYED}
local place, due = place_of(ARGV[1])
if not place then return false end
local message = cmsgpack.unpack(call('HGET', messages, ARGV[1]))
return { place, ARGV[1], due, message[1], message[2] }
`

/** Answers how many there are and, if any, in how many ms the first can be taken. */
export const LOOK_AT_DELAYED: string = `${NOW}
local first = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { call('ZCARD', KEYS[1]), first[2] and whole(math.max(0, first[2] - now)) }
`

/** KEYS of all on the shelf: letters, order of all, order of each class (see \`CLASSES\`), audit. */
const SHELF = `
local letters, dead, audit = KEYS[1], KEYS[2], KEYS[7]
local CLASSES = { transient = 3, permanent = 4, throttled = 5, crashed = 6 }
local function member(dead_at, id) return string.format('%015.0f:%s', dead_at, id) end
local function letter_of(id)
  local packed = call('HGET', letters, id)
  return packed and cmsgpack.unpack(packed)
end
local function remove(id, letter)
  call('HDEL', letters, id)
  call('ZREM', dead, member(letter[1], id))
  call('ZREM', KEYS[CLASSES[letter[2]]], member(letter[1], id))
end
`

/** ARGV: for each letter id, class, letter, message, body. */
export const PUT_LETTERS: string = `${NOW}${SHELF}
for i = 1, #ARGV, 5 do
  local id, class, dead_at = ARGV[i], ARGV[i + 1], now
  local before = letter_of(id)
  if before then
    dead_at = math.max(now, before[1] + 1)
    remove(id, before)
  end
  local letter = { tonumber(whole(dead_at)), class, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4] }
  call('HSET', letters, id, cmsgpack.pack(letter))
  call('ZADD', dead, 0, member(dead_at, id))
  call('ZADD', KEYS[CLASSES[class]], 0, member(dead_at, id))
end
`

const SHOWN = `
local function shown(id, letter)
  return { id, whole(letter[1]), letter[2], letter[3], letter[4], letter[5] }
end
`

/**
 * ARGV: class or nothing, the place that the page begins behind, how many, bytes of bodies in all or nothing for no bodies. Ends with
 * the first letter that has more, unless it is alone.
 */
export const LIST_LETTERS: string = `${NOW}${SHELF}${SHOWN}
local order = ARGV[1] == '' and dead or KEYS[CLASSES[ARGV[1]]]
local out, bytes, most = {}, 0, tonumber(ARGV[4])
for _, one in ipairs(call('ZREVRANGEBYLEX', order, ARGV[2], '-', 'LIMIT', 0, ARGV[3])) do
  local id = string.sub(one, 17)
  local letter = letter_of(id)
  if not most then letter[5] = '' end
  bytes = bytes + #letter[5]
  out[#out + 1] = shown(id, letter)
  if most and #out > 1 and bytes > most then break end
end
return out
`

/** ARGV: class or nothing, the place that ends the count. */
export const COUNT_LETTERS: string = `${NOW}${SHELF}
local order = ARGV[1] == '' and dead or KEYS[CLASSES[ARGV[1]]]
return call('ZLEXCOUNT', order, '-', ARGV[2])
`

/** ARGV: id. */
export const GET_LETTER: string = `${NOW}${SHELF}${SHOWN}
local letter = letter_of(ARGV[1])
return letter and shown(ARGV[1], letter)
`

/**
 * ARGV: act, actor, reason, then for each letter id and its moment of death, or nothing for any. What was put anew since stays,
 * and is on record all the same.
 */
export const REMOVE_LETTERS: string = `${NOW}${SHELF}
local gone = {}
for i = 4, #ARGV, 2 do
  local id, dead_at = ARGV[i], ARGV[i + 1]
  local letter = letter_of(id)
  if letter then
    if dead_at == '' or dead_at == whole(letter[1]) then remove(id, letter) end
    call('XADD', audit, 'MAXLEN', '~', 100000, '*', 'at', whole(now), 'act', ARGV[1], 'id', id, 'actor', ARGV[2], 'reason', ARGV[3])
    gone[#gone + 1] = id
  end
end
return gone
`

/** ARGV: how many. Newest first. */
export const AUDIT: string = `
return redis.call('XREVRANGE', KEYS[7], '+', '-', 'COUNT', ARGV[1])
`

/** KEYS: entries. ARGV: keep in ms, then for each of them its text. */
export const WRITE_ENTRIES: string = `
for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i + 1], 'PX', ARGV[1]) end
`
export const READ_ENTRIES: string = `
local out = {}
for i = 1, #KEYS do out[i] = redis.call('GET', KEYS[i]) end
return out
`
export const FORGET_ENTRIES: string = `
for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end
`

/** KEYS of all on leases: the lease, the last fence of its name. */
const LEASE = `
local lease, last = unpack(KEYS)
local held = redis.call('HMGET', lease, 'holder', 'fence')
`

/**
 * ARGV: holder, lease in ms. The last fence is forgotten a day after the lease; from the clock a new one is larger still.
 */
export const ACQUIRE_LEASE: string = `${NOW}${LEASE}
if held[1] and held[1] ~= ARGV[1] then return false end
local fence = held[2]
if not fence then
  fence = whole(math.max(exact * 1000, (call('GET', last) or 0) + 1))
  call('HSET', lease, 'holder', ARGV[1], 'fence', fence)
end
call('PEXPIRE', lease, ARGV[2])
call('SET', last, fence, 'PX', whole(ARGV[2] + 86400000))
return fence
`

/** ARGV: holder, fence, lease in ms. */
export const RENEW_LEASE: string = `${LEASE}
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return 0 end
redis.call('PEXPIRE', last, string.format('%.0f', ARGV[3] + 86400000))
return redis.call('PEXPIRE', lease, ARGV[3])
`

/** ARGV: holder, fence. */
export const RELEASE_LEASE: string = `${LEASE}
if held[1] == ARGV[1] and held[2] == ARGV[2] then return redis.call('DEL', lease) end
`

/**
 * KEYS of all on slots: their ends (holder by moment), how many a key holds, the rest of each (fence and key), the last fence of the
 * pool. What has ended is removed first; no slot is without its rest.
 */
const SLOTS = `
local ends, held_by, rest, last = unpack(KEYS)
local function remove(holder)
  local key = cmsgpack.unpack(call('HGET', rest, holder))[2]
  call('ZREM', ends, holder)
  call('HDEL', rest, holder)
  if key == '' then return end
  local left = call('ZSCORE', held_by, key) - 1
  if left > 0 then call('ZADD', held_by, left, key) else call('ZREM', held_by, key) end
end
local function fence_of(holder)
  local packed = call('HGET', rest, holder)
  return packed and cmsgpack.unpack(packed)[1]
end
local function keep()
  local longest = call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2] or now
  for _, key in ipairs(KEYS) do call('PEXPIRE', key, whole(longest - now + 86400000)) end
end
repeat
  local ended = call('ZRANGEBYSCORE', ends, '-inf', whole(now), 'LIMIT', 0, 1000)
  for _, holder in ipairs(ended) do remove(holder) end
until #ended == 0
`

/** ARGV: lease in ms, max, max per key (or nothing), then holder and key (or nothing) of each. Answers fence, \`pool\` or \`key\` for each. */
export const ACQUIRE_SLOTS: string = `${NOW}${SLOTS}
local max, max_per_key = tonumber(ARGV[2]) or math.huge, tonumber(ARGV[3]) or math.huge
local held, end_at, out = call('ZCARD', ends), whole(now + ARGV[1]), {}
for i = 4, #ARGV, 2 do
  local holder, key = ARGV[i], ARGV[i + 1]
  local fence = fence_of(holder)
  local of_key = key ~= '' and tonumber(call('ZSCORE', held_by, key) or 0) or 0
  if not fence and key ~= '' and of_key >= max_per_key then
    out[#out + 1] = 'key'
  elseif not fence and held >= max then
    out[#out + 1] = 'pool'
  else
    if not fence then
      fence, held = whole(math.max(exact * 1000, (call('GET', last) or 0) + 1)), held + 1
      call('SET', last, fence)
      call('HSET', rest, holder, cmsgpack.pack({ fence, key }))
      if key ~= '' then call('ZADD', held_by, of_key + 1, key) end
    end
    call('ZADD', ends, end_at, holder)
    out[#out + 1] = fence
  end
end
keep()
return out
`

/** ARGV: lease in ms, then holder and fence of each. Answers 1 for each that was renewed, else 0. */
export const RENEW_SLOTS: string = `${NOW}${SLOTS}
local out = {}
for i = 2, #ARGV, 2 do
  local is_own = fence_of(ARGV[i]) == ARGV[i + 1]
  if is_own then call('ZADD', ends, whole(now + ARGV[1]), ARGV[i]) end
  out[#out + 1] = is_own and 1 or 0
end
keep()
return out
`

/** ARGV: holder and fence of each. */
export const RELEASE_SLOTS: string = `${NOW}${SLOTS}
for i = 1, #ARGV, 2 do
  if fence_of(ARGV[i]) == ARGV[i + 1] then remove(ARGV[i]) end
end
`

/** ARGV: most keys. Answers how many are held, then key and number of those with most. */
export const COUNT_SLOTS: string = `${NOW}${SLOTS}
local out = call('ZRANGE', held_by, 0, ARGV[1] - 1, 'REV', 'WITHSCORES')
table.insert(out, 1, tostring(call('ZCARD', ends)))
return out
`

/** As \`takeTokens\`, by this clock. ARGV: capacity, tokens per ms, tokens. Answers 0, or in how many ms they are there. */
export const TAKE_TOKENS: string = `${NOW}
local capacity, per_ms, tokens = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local there, before = capacity, call('HMGET', KEYS[1], 'tokens', 'at', 'full')
if before[1] and tonumber(before[3]) > exact then
  there = math.min(capacity, before[1] + math.max(0, exact - before[2]) * per_ms)
end
if there + 1e-9 < tokens then return whole(math.max(1, math.ceil((tokens - there) / per_ms))) end
local left = math.max(0, there - tokens)
local full = (capacity - left) / per_ms
local function double(number) return string.format('%.17g', number) end
call('HSET', KEYS[1], 'tokens', double(left), 'at', double(exact), 'full', double(exact + full))
call('PEXPIRE', KEYS[1], whole(math.max(1, math.ceil(full))))
return '0'
`

/** ARGV: delta, keep in ms. Stops at the numbers that a double holds exactly. */
export const ADD_TO_COUNTER: string = `
local before = redis.call('GET', KEYS[1])
local sum = math.min(9007199254740991, math.max(-9007199254740991, (before or 0) + ARGV[1]))
local text = string.format('%.0f', sum)
if before then redis.call('SET', KEYS[1], text, 'KEEPTTL') else redis.call('SET', KEYS[1], text, 'PX', ARGV[2]) end
return text
`
export const READ_COUNTER: string = `return redis.call('GET', KEYS[1]) or '0'`

export const READ_STATE: string = `return redis.call('HMGET', KEYS[1], 'value', 'version')`
/** ARGV: version or nothing, value. */
export const SWAP_STATE: string = `
local version = redis.call('HGET', KEYS[1], 'version') or ''
if version ~= ARGV[1] then return false end
local next = string.format('%.0f', (tonumber(version) or 0) + 1)
redis.call('HSET', KEYS[1], 'value', ARGV[2], 'version', next)
return next
`
