import { FAIR_KEY, FAIR_WEIGHT, PRIORITY } from '../entry.ts'
import { LINES } from './lines.ts'
import { ADD, FIELDS, NOW, PRELUDE, RING } from './prelude.ts'

/** What both begin with: -1 without the queue, the room that is left, and which of some ids are there already. */
const BEGIN = `${PRELUDE}
local queue = call('HMGET', meta, 'layout', 'maxDepth')
if not is_known(queue[1]) then return -1 end
local room = math.huge
if queue[2] then room = tonumber(queue[2]) - call('HLEN', ids) end
local has_dead = call('EXISTS', shelf) == 1
-- Asked for together: one by one costs 1.5 µs each.
local function stored_of(all_ids)
  local refs, n = {}, #all_ids
  for first = 1, n, 2000 do
    local some = call('HMGET', ids, unpack(all_ids, first, math.min(first + 1999, n)))
    for k = 1, #some do refs[first + k - 1] = some[k] end
  end
  return refs
end
local function remember(added)
  for from = 1, #added, 2000 do
    call('HSET', ids, unpack(added, from, math.min(from + 1999, #added)))
  end
end
`

/**
 * ARGV: 1 for all or nothing, then for each item its id, when it is ready (nothing, `d` and a delay or `a` and a moment),
 * the number of its fields and they, the number of its keys and for each the place in KEYS, its kind, fingerprint and
 * window. Decides everything before it writes anything. Answers the number of items when each was stored, else a text
 * for each: empty, or `d`uplicate, `c`onflict with the id of the other message, or `f`ull; -1 without the queue.
 *
 * The first write is one that Redis refuses when its memory is full, so that a refused send has written nothing.
 */
export const SEND: string = `${BEGIN}${NOW}${RING}${ADD}
local outcomes, chosen, chosen_ids, chosen_keys = {}, {}, {}, {}
local refused = false

-- Where each item begins, where its fields end, and how many keys it has.
local at, last_of, keys_of, all_ids, n, in_order = {}, {}, {}, {}, 0, false
local next_at, argc = 2, #ARGV
while next_at <= argc do
  n = n + 1
  local last = next_at + 2 + tonumber(ARGV[next_at + 2])
  local keys = tonumber(ARGV[last + 1])
  at[n], last_of[n], keys_of[n], all_ids[n] = next_at, last, keys, ARGV[next_at]
  -- The last one, where there is one.
  in_order = in_order or ARGV[last - 1] == 'orderingKey'
  next_at = last + 2 + keys * 4
end
local refs = stored_of(all_ids)

local function judged(item)
  local id, keys = all_ids[item], keys_of[item]
  if chosen_ids[id] or refs[item] then return 'd' .. id end
  if has_dead and call('HEXISTS', shelf, id) == 1 then return 'd' .. id end
  if keys == 0 then return end
  local first, conflict
  for k = last_of[item] + 2, last_of[item] + 1 + keys * 4, 4 do
    local name = KEYS[tonumber(ARGV[k])]
    local held = chosen_keys[name] or call('GET', name)
    if held then
      local cut = string.find(held, '\\0', 1, true)
      local holder = string.sub(held, 1, cut - 1)
      if holder == id then return 'd' .. id end
      if ARGV[k + 1] == 'idempotency' and string.sub(held, cut + 1) ~= ARGV[k + 2] then
        conflict = conflict or ('c' .. holder)
      end
      first = first or ('d' .. holder)
    end
  end
  return conflict or first
end

for item = 1, n do
  local outcome = judged(item)
  if not outcome and room <= 0 then outcome = 'f' end
  if outcome then
    if string.sub(outcome, 1, 1) ~= 'd' then refused = true end
  else
    room = room - 1
    local id = all_ids[item]
    chosen_ids[id] = true
    for k = last_of[item] + 2, last_of[item] + 1 + keys_of[item] * 4, 4 do
      chosen_keys[KEYS[tonumber(ARGV[k])]] = id .. '\\0' .. ARGV[k + 2]
    end
    chosen[#chosen + 1] = item
  end
  outcomes[item] = outcome or ''
end

local enters, waits
if in_order then
  ${FIELDS}${LINES}
  enters, waits = enter, wait
end

if #chosen > 0 and not (refused and ARGV[1] == '1') then
  local added = {}
  for _, item in ipairs(chosen) do
    local id, when = all_ids[item], ARGV[at[item] + 1]
    local first, last = at[item] + 3, last_of[item]
    local ready_at = 0
    if when ~= '' then
      ready_at = tonumber(string.sub(when, 2))
      if string.sub(when, 1, 1) == 'd' then ready_at = now + ready_at end
    end
    -- Always behind id and body.
    local level, share_at, weight = 0, first + 4, 1
    if ARGV[share_at] == '${PRIORITY}' then level, share_at = tonumber(ARGV[first + 5]), first + 6 end
    local share = ARGV[share_at] == '${FAIR_KEY}' and ARGV[share_at + 1]
    if share and ARGV[share_at + 2] == '${FAIR_WEIGHT}' then weight = tonumber(ARGV[share_at + 3]) end
    if level > 0 then raise('levels', level + 1) end
    if share then raise('fair', 1) end
    local key = ARGV[last - 1] == 'orderingKey' and ARGV[last]
    local has_turn = not key or enters(key, id)
    if not has_turn or ready_at > now or share then
      local fields = { unpack(ARGV, first, last) }
      fields[#fields + 1] = 'at'
      fields[#fields + 1] = whole(now)
      if not has_turn then
        waits(key, id, fields, ready_at)
      elseif ready_at > now then
        park(id, fields, ready_at)
      else
        line_up_share(id, fields, level, share, weight)
      end
    else
      added[#added + 1] = id
      added[#added + 1] = (level > 0 and 'p' .. level or '') .. call('XADD', level_stream(level), '*', unpack(ARGV, first, last))
    end
    for k = last + 2, last + 1 + keys_of[item] * 4, 4 do
      if tonumber(ARGV[k + 3]) > 0 then
        call('SET', KEYS[tonumber(ARGV[k])], id .. '\\0' .. ARGV[k + 2], 'PX', ARGV[k + 3])
      end
    end
  end
  remember(added)
  ring()
end
if #chosen == #outcomes then return #outcomes end
return outcomes
`

/**
 * As SEND, for items of an id and a body and nothing else, as most are. ARGV: 1 for all or nothing, then id and body of each.
 */
export const SEND_PLAIN: string = `${BEGIN}${RING}
local all_ids, n = {}, 0
for at = 2, #ARGV, 2 do
  n = n + 1
  all_ids[n] = ARGV[at]
end
local refs, chosen_ids, chosen, outcomes, refused = stored_of(all_ids), {}, {}, nil, false
for item, id in ipairs(all_ids) do
  local outcome
  if refs[item] or chosen_ids[id] or has_dead and call('HEXISTS', shelf, id) == 1 then
    outcome = 'd' .. id
  elseif room <= 0 then
    outcome, refused = 'f', true
  else
    room = room - 1
    chosen_ids[id] = true
    chosen[#chosen + 1] = item
  end
  if outcome then
    outcomes = outcomes or {}
    outcomes[item] = outcome
  end
end

if #chosen > 0 and not (refused and ARGV[1] == '1') then
  local added, last = {}, 0
  for _, item in ipairs(chosen) do
    local id = all_ids[item]
    added[last + 1] = id
    added[last + 2] = call('XADD', ready, '*', 'id', id, 'body', ARGV[2 * item + 1])
    last = last + 2
  end
  remember(added)
  ring()
end
if not outcomes then return n end
for item = 1, n do outcomes[item] = outcomes[item] or '' end
return outcomes
`
