import { MillraceError } from '../model/errors.ts'

/** What a receiver answered; the cause of the error that `httpTarget` throws, for a queue's own `classify`. */
export class HttpStatusError extends MillraceError {
  readonly status: number
  /** Of the response, lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  constructor(message: string, status: number, headers: HttpStatusError['headers']) {
    super('MILLRACE_HTTP_STATUS', message, { fields: { status } })
    this.status = status
    this.headers = headers
  }
}
