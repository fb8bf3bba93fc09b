import { MillraceError } from '../model/errors.ts'

/** For an inbox whose effects are synchronous (SQLite). */
export function asyncEffectRefused(): MillraceError {
  return new MillraceError(
    'MILLRACE_TX_ASYNC',
    'the function given to ctx.tx is asynchronous; on SQLite it must be synchronous, because whatever else the process ' +
      'does on this handle meanwhile would run inside the transaction; nothing was committed, do the waiting before ctx.tx',
  )
}

/** Known before it is called, so that nothing of it runs on after its transaction is gone. */
export function isAsyncFunction(run: (...args: never[]) => unknown): boolean {
  return Object.prototype.toString.call(run) === '[object AsyncFunction]'
}
