import assert from 'node:assert/strict'
import { hasCode } from 'millrace'
import { until } from '../transports/until.ts'

/**
 * Opens an app whose limits are as short as its faults need: a server that has just come up on a busy machine may take longer for its
 * first answers.
 */
export async function patiently<Opened>(open: () => Promise<Opened>): Promise<Opened> {
  let opened: { readonly app: Opened } | undefined
  await until('a start', async () => {
    try {
      opened = { app: await open() }
    } catch (error) {
      if (!hasCode(error, 'MILLRACE_UNAVAILABLE')) throw error
    }
    return opened !== undefined
  })
  assert.ok(opened !== undefined)
  return opened.app
}
