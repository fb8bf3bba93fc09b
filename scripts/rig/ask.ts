import { connect } from 'node:net'

/** Sends bytes to a server on a plain TCP connection; resolves with what it says, as soon as `enough` of it came. */
export function ask(
  at: { readonly host: string; readonly port: number },
  said: string | Uint8Array,
  enough: (answer: Buffer) => boolean,
): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    let answer = Buffer.alloc(0)
    const socket = connect(at.port, at.host, () => socket.write(said))
    const done = (value: Buffer | undefined): void => {
      socket.destroy()
      resolve(value)
    }
    socket.setTimeout(2_000, () => done(undefined))
    socket.on('error', () => done(undefined)).on('close', () => done(undefined))
    socket.on('data', (bytes) => {
      answer = Buffer.concat([answer, bytes])
      if (enough(answer)) done(answer)
    })
  })
}

export function placeOf(
  url: string,
  port: number,
): { readonly host: string; readonly port: number } {
  const at = new URL(url)
  return { host: at.hostname, port: at.port === '' ? port : Number(at.port) }
}
