/** What a handler would have thrown, for a code alone: `503`, `ECONNRESET`, `40P01`, `GRPC_14`, `ThrottlingException`. */
export function errorNamed(code: string, headers: Readonly<Record<string, string>> = {}): unknown {
  if (/^\d{3}$/.test(code)) return { status: Number(code), headers }
  const grpc = /^GRPC_(\d{1,2})$/.exec(code)?.[1]
  if (grpc !== undefined) return { code: Number(grpc), details: '', headers }
  // `severity` marks a SQLSTATE of PostgreSQL; without one, letters first are a code of Node (EPIPE).
  const isState = /^(?=.*\d)[0-9A-Z]{5}$/.test(code)
  return { code, name: code, headers, ...(isState ? { severity: 'ERROR' } : {}) }
}
