import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../../scripts/rig/command.ts'

/** A certificate and its key, as files for servers and as bytes for clients. */
export interface Certificate {
  readonly certFile: string
  readonly keyFile: string
  readonly cert: Buffer
  readonly key: Buffer
}

/** A private authority with a certificate of a server on loopback (`localhost`, `127.0.0.1`), and one of a client. */
export interface Certificates {
  readonly caFile: string
  readonly ca: Buffer
  readonly server: Certificate
  /** Its common name is `app`. */
  readonly client: Certificate
  remove(): Promise<void>
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
const LEAF = ['-addext', 'basicConstraints=critical,CA:FALSE']

export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-certificates-'))
  const file = (name: string): string => join(folder, name)
  const request = async (name: string, subject: string, more: readonly string[]) => {
    const [certFile, keyFile] = [file(`${name}.pem`), file(`${name}.key`)]
    const out = ['-keyout', keyFile, '-out', certFile, '-subj', `/CN=${subject}`, '-days', '2']
    await run('openssl', ['req', '-x509', ...NEW_KEY, ...out, ...more])
    return { certFile, keyFile, cert: await readFile(certFile), key: await readFile(keyFile) }
  }
  const ca = await request('ca', 'millrace test authority', [])
  const signed = ['-CA', ca.certFile, '-CAkey', ca.keyFile, ...LEAF]
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  return {
    caFile: ca.certFile,
    ca: ca.cert,
    server: await request('server', 'localhost', [...signed, ...names]),
    client: await request('client', 'app', signed),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}
