import { type CallParts, runScript, type Script, scriptOf } from '../../redis/call.ts'
import type { Args, Reply } from '../../redis/wire.ts'
import * as named from './scripts.ts'

type Name = keyof typeof named

const sources: Readonly<Record<Name, string>> = { ...named }

/** One connection of the store. */
export interface Database {
  /** Runs a script on keys of one name, which all carry one hash tag. Texts come as bytes. */
  run(script: Name, keys: readonly string[], args: Args): Promise<Reply>
  /** The key of this kind for a name: \`{prefix:store:name}:kind\`. */
  key(name: string, kind: string): string
}

const scripts = new Map<Name, Script>()

export function openDatabase(parts: CallParts, prefix: string): Database {
  return {
    run(name, keys, args) {
      const script = scripts.get(name) ?? scriptOf(sources[name])
      scripts.set(name, script)
      return runScript(parts, script, keys, args, { bytes: true })
    },
    key: (name, kind) => `{${prefix}:store:${tagged(name)}}:${kind}`,
  }
}

/** A closing brace would end the hash tag early, and two names could then look like one. */
function tagged(name: string): string {
  return name.replace(/[%{}]/g, (one) => `%${one.charCodeAt(0).toString(16)}`)
}

/** Redis ends nothing in less than a millisecond, nor in parts of one. */
export function wholeMs(ms: number): string {
  return String(Math.max(1, Math.ceil(ms)))
}

export function listOf(reply: Reply): readonly Reply[] {
  return Array.isArray(reply) ? reply : []
}

/** So many items one script takes: it stops the server meanwhile. */
const STEP = 500

export function steps<T>(all: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(all.length / STEP)
  return Array.from({ length: count }, (_, at) => all.slice(at * STEP, (at + 1) * STEP))
}

export function bufferOf(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
