import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KafkaServer } from '../../scripts/rig/kafka-server.ts'

/** Changes one batch of a partition (`topic-0`), counted from 0, in its file. The broker must be down. */
export function spoil(
  { folder }: KafkaServer,
  partition: string,
  index: number,
  change: (batch: Buffer) => void,
): void {
  const file = join(folder, 'data', partition, '00000000000000000000.log')
  const bytes = readFileSync(file)
  let at = 0
  for (let skipped = 0; skipped < index; skipped += 1) at += 12 + bytes.readInt32BE(at + 8)
  change(bytes.subarray(at, at + 12 + bytes.readInt32BE(at + 8)))
  writeFileSync(file, bytes)
}
