// Opens a file as somebody who may not write to it, and prints what it says. Root gives up its rights first.
import { createMillrace, defineQueue } from 'millrace'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

const NOBODY = 65_534
const queue = defineQueue({ name: 'q', owner: 'team', payload: z.number() })
const transport = sqlite({ file: process.argv[2] ?? '' })
if (process.getuid?.() === 0) process.setuid?.(NOBODY)
const said = await createMillrace({ transport, queues: [queue] }).catch((error: unknown) => error)
console.log(JSON.stringify(said))
