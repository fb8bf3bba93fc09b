import { LEVELS } from '../keys.ts'
import { PRELUDE } from './prelude.ts'

/**
 * ARGV: group, owner, capacity or nothing, then `create`, `check` or `none`, `look` where nothing is to be written, and what a death
 * does to an ordering key, and what a level is worth in ms or nothing. Answers all that is not as it has to be: lists of a kind
 * and what was found, see `topology.ts`. Where it answers an empty list it has written what the queue is, and with `create` made
 * what was missing.
 */
export const ENSURE: string = `${PRELUDE}
local TYPES = { 'hash', 'stream', 'stream', 'zset', 'hash', 'zset', 'hash', 'hash', 'zset', 'stream', [15] = 'hash' }
for level = 1, ${LEVELS - 1} do TYPES[17 + level] = 'stream' end
TYPES[28] = 'stream'
local group, mode, found = ARGV[1], ARGV[4], {}
local function differs(...) found[#found + 1] = { ... } end

local function look_at_types()
  for i, key in ipairs(KEYS) do
    -- A user who may not ask is told by the first command that does not fit.
    local kind, wanted = redis.pcall('TYPE', key).ok or 'none', TYPES[i] or 'zset'
    if kind ~= 'none' and kind ~= wanted then differs('type', key, kind, wanted) end
  end
end

local function look_at_groups()
  local ours
  local groups = redis.pcall('XINFO', 'GROUPS', ready)
  for _, info in ipairs(groups.err and {} or groups) do
    local named = {}
    for i = 1, #info, 2 do named[info[i]] = info[i + 1] end
    if named.name == group then ours = named else differs('other group', named.name) end
  end
  if not ours and mode == 'check' then differs(groups.err and 'no stream' or 'no group') end
  return ours
end

local function behind(id)
  local moment, place = string.match(id, '^(%d+)%-(%d+)$')
  return string.format('%s-%.0f', moment, tonumber(place) + 1)
end

local function look_at_entries(ours)
  local last, held = ours['last-delivered-id'], call('XPENDING', ready, group)
  for _, one in ipairs(held[4] or {}) do
    if not call('ZSCORE', claims, one[1]) then differs('held', one[1], one[2]) end
  end
  local function is_left(entry)
    return entry and #call('XPENDING', ready, group, entry[1], entry[1], 1) == 0
  end
  -- Where it begins and where it ends: all between them could be many.
  local oldest = call('XRANGE', ready, '-', last, 'COUNT', 1)[1]
  local newest = call('XREVRANGE', ready, last, '-', 'COUNT', 1)[1]
  if is_left(oldest) or is_left(newest) then
    differs('left', held[1] > 0 and held[2] or behind(last))
  end
end

if mode ~= 'none' then look_at_types() end
if #found > 0 then return found end
local layout = call('HGET', meta, 'layout') or '1'
if tonumber(layout) > 3 then return { { 'newer' } } end
if mode ~= 'none' then
  local ours = look_at_groups()
  if ours then look_at_entries(ours) end
end
if #found > 0 or ARGV[5] == 'look' then return found end

-- With lines or levels it has no owner; see LINES and RAISE.
call('HSET', meta, layout == '1' and 'owner' or 'keeper', ARGV[2], 'layout', layout, 'onDead', ARGV[6])
if ARGV[7] == '' then call('HDEL', meta, 'ageingMs') else call('HSET', meta, 'ageingMs', ARGV[7]) end
if ARGV[3] == '' then call('HDEL', meta, 'maxDepth') else call('HSET', meta, 'maxDepth', ARGV[3]) end
for _, stream in ipairs(mode == 'create' and { ready, suspects } or {}) do
  local made = redis.pcall('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
  if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP') then return made end
end
return found
`
