/**
 * An error value for a code as people write it: `503`, `HTTP_503`, `ECONNRESET`, `40P01`, `GRPC_14`,
 * `ThrottlingException`, `SQLITE_BUSY`, `MILLRACE_QUEUE_FULL`. For asking the classifier about a code alone.
 */
export function errorNamed(text: string, headers: Readonly<Record<string, string>> = {}): unknown {
  const code = text.trim()
  const status = /^(?:HTTP[_ -]?)?([1-5]\d\d)$/i.exec(code)?.[1]
  if (status !== undefined) return { status: Number(status), headers }
  const grpc = /^GRPC[_ -]?(\d{1,2})$/i.exec(code)?.[1]
  if (grpc !== undefined) return { code: Number(grpc), details: '', headers }
  // `severity` marks a SQLSTATE of PostgreSQL; without one, letters first are a code of Node (EPIPE).
  const isState = /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')
  return { code, name: code, headers, ...(isState ? { severity: 'ERROR' } : {}) }
}
