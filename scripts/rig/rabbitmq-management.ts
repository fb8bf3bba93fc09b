/** The version that the management plugin tells; undefined when it, or a listener on `port`, does not answer. */
export async function managementVersion(url: string, port?: number): Promise<string | undefined> {
  if (
    port !== undefined &&
    (await get(url, `/api/health/checks/port-listener/${port}`)) === undefined
  )
    return undefined
  const overview = await get(url, '/api/overview')
  const isTold = typeof overview === 'object' && overview !== null && 'rabbitmq_version' in overview
  return isTold ? String(overview.rabbitmq_version) : undefined
}

async function get(url: string, path: string): Promise<unknown> {
  const at = new URL(path, url)
  const login = `${decodeURIComponent(at.username)}:${decodeURIComponent(at.password)}`
  at.username = ''
  at.password = ''
  try {
    const answer = await fetch(at, {
      headers: { authorization: `Basic ${Buffer.from(login).toString('base64')}` },
      signal: AbortSignal.timeout(2_000),
    })
    const body: unknown = await answer.json()
    return answer.ok ? body : undefined
  } catch {
    return undefined
  }
}
