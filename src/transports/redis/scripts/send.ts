import { ADD, NOW, PRELUDE, RING } from './prelude.ts'

/**
 * ARGV: 1 for all or nothing, then for each item its id, when it is ready (nothing, `d` and a delay or `a` and a moment),
 * the number of its fields and they, the number of its keys and for each the place in KEYS, its kind, fingerprint and
 * window. Decides everything before it writes anything. Answers the number of items when each was stored, else a text
 * for each: empty, or `d`uplicate, `c`onflict with the id of the other message, or `f`ull; -1 without the queue.
 *
 * The first write is one that Redis refuses when its memory is full, so that a refused send has written nothing.
 */
export const SEND: string = `${PRELUDE}
local queue = call('HMGET', meta, 'owner', 'maxDepth')
if not queue[1] then return -1 end
${NOW}${RING}${ADD}
local room = math.huge
if queue[2] then room = tonumber(queue[2]) - call('HLEN', ids) end
local has_dead = call('EXISTS', shelf) == 1
local outcomes, chosen, chosen_ids, chosen_keys = {}, {}, {}, {}
local refused = false

local function judged(id, at, keys)
  if chosen_ids[id] or call('HEXISTS', ids, id) == 1 then return 'd' .. id end
  if has_dead and call('HEXISTS', shelf, id) == 1 then return 'd' .. id end
  local first, conflict
  for k = at, at + keys * 4 - 1, 4 do
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

local i = 2
while i <= #ARGV do
  local id = ARGV[i]
  local last = i + 2 + tonumber(ARGV[i + 2])
  local keys = tonumber(ARGV[last + 1])
  local outcome = judged(id, last + 2, keys)
  if not outcome and room <= 0 then outcome = 'f' end
  if outcome then
    if string.sub(outcome, 1, 1) ~= 'd' then refused = true end
  else
    room = room - 1
    chosen_ids[id] = true
    for k = last + 2, last + 1 + keys * 4, 4 do
      chosen_keys[KEYS[tonumber(ARGV[k])]] = id .. '\\0' .. ARGV[k + 2]
    end
    chosen[#chosen + 1] = i
  end
  outcomes[#outcomes + 1] = outcome or ''
  i = last + 2 + keys * 4
end

if #chosen > 0 and not (refused and ARGV[1] == '1') then
  local refs = {}
  for _, at in ipairs(chosen) do
    local id, when = ARGV[at], ARGV[at + 1]
    local last = at + 2 + tonumber(ARGV[at + 2])
    local ready_at = 0
    if when ~= '' then
      ready_at = tonumber(string.sub(when, 2))
      if string.sub(when, 1, 1) == 'd' then ready_at = now + ready_at end
    end
    if ready_at > now then
      local fields = { unpack(ARGV, at + 3, last) }
      fields[#fields + 1] = 'at'
      fields[#fields + 1] = whole(now)
      park(id, fields, ready_at)
    else
      refs[#refs + 1] = id
      refs[#refs + 1] = call('XADD', ready, '*', unpack(ARGV, at + 3, last))
    end
    for k = last + 2, last + 1 + tonumber(ARGV[last + 1]) * 4, 4 do
      if tonumber(ARGV[k + 3]) > 0 then
        call('SET', KEYS[tonumber(ARGV[k])], id .. '\\0' .. ARGV[k + 2], 'PX', ARGV[k + 3])
      end
    end
  end
  for from = 1, #refs, 2000 do
    call('HSET', ids, unpack(refs, from, math.min(from + 1999, #refs)))
  end
  ring()
end
if #chosen == #outcomes then return #outcomes end
return outcomes
`
