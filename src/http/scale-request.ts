import type { ScaleOptions, ScaleView } from '../admin/admin.ts'
import { refuse } from './http-error.ts'
import type { IntakeApp } from './intake-options.ts'

// A record, so that the compiler misses the name that is forgotten here.
const names: Readonly<Record<Exclude<keyof ScaleOptions, 'watchMs' | 'signal'>, true>> = {
  concurrency: true,
  clearWithinMs: true,
  utilisation: true,
  min: true,
  max: true,
  handlerMs: true,
  arrivalsPerSecond: true,
}

/**
 * `GET /scale/:queue?clearWithinMs=60000`, made for the metrics-api scaler of KEDA: it reads one number out of a JSON body by its
 * name and takes a missing one for an error, so what is not known is left out, and the replicas stay as they are.
 */
export async function scaleOf(app: IntakeApp, queue: string, url: string): Promise<ScaleView> {
  if (app.admin === undefined) throw refuse(404, 'NOT_FOUND', 'this intake tells no numbers')
  return app.admin.scale(queue, optionsOf(url))
}

function optionsOf(url: string): ScaleOptions {
  const at = url.indexOf('?')
  const asked = new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
  return Object.fromEntries([...asked].map(([name, text]) => [known(name), numberOf(name, text)]))
}

function known(name: string): string {
  if (Object.hasOwn(names, name)) return name
  const taken = Object.keys(names).join(', ')
  throw refuse(400, 'BAD_QUERY', `expected ${taken}; got ${JSON.stringify(name.slice(0, 50))}`)
}

function numberOf(name: string, text: string): number {
  if (/^\d{1,12}(\.\d{1,6})?$/.test(text)) return Number(text)
  const got = JSON.stringify(text.slice(0, 50))
  throw refuse(400, 'BAD_QUERY', `${name}: expected a number, got ${got}`)
}
