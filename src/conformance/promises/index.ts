import type { Family } from '../promise.ts'
import { ack } from './ack.ts'
import { crash } from './crash.ts'
import { lease } from './lease.ts'
import { receive } from './receive.ts'
import { release } from './release.ts'
import { send } from './send.ts'

/** All promises, in the order of docs/guarantees.md. */
export const families: readonly Family[] = [send, receive, ack, release, lease, crash]
