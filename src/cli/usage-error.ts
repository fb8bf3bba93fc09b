/** The user asked for something that cannot be: one line on stderr, exit code 2. */
export class UsageError extends Error {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = 'UsageError'
  }
}
