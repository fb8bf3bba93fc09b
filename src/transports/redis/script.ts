import { type Script, scriptOf } from '../../redis/call.ts'
import * as adminScripts from './scripts/admin.ts'
import * as claimScripts from './scripts/claim.ts'
import * as haltedScripts from './scripts/halted-keys.ts'
import * as sendScripts from './scripts/send.ts'
import * as settleScripts from './scripts/settle.ts'
import * as shedScripts from './scripts/shed.ts'
import * as topologyScripts from './scripts/topology.ts'

type Name =
  | keyof typeof adminScripts
  | keyof typeof claimScripts
  | keyof typeof haltedScripts
  | keyof typeof sendScripts
  | keyof typeof settleScripts
  | keyof typeof shedScripts
  | keyof typeof topologyScripts

const sources: Readonly<Record<Name, string>> = {
  ...adminScripts,
  ...claimScripts,
  ...haltedScripts,
  ...sendScripts,
  ...settleScripts,
  ...shedScripts,
  ...topologyScripts,
}

export const scripts: Readonly<Record<Name, Script>> = {
  ...mapped(sources),
}

function mapped<Key extends string>(all: Readonly<Record<Key, string>>): Record<Key, Script> {
  const made: Partial<Record<Key, Script>> = {}
  for (const name in all) {
    made[name] = scriptOf(all[name])
  }
  return made as Record<Key, Script>
}
