import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** Not on the public internet: IANA's special-purpose registry for IPv4, as of 2025. */
const special4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** Within 2000::/3, the only range of public IPv6 addresses, what is not public: tunnels, documentation, benchmarks. */
const special6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const special = new BlockList()
for (const [net, prefix] of special4) special.addSubnet(net, prefix, 'ipv4')
for (const [net, prefix] of special6) special.addSubnet(net, prefix, 'ipv6')

const global6 = new BlockList()
global6.addSubnet('2000::', 3, 'ipv6')

/** Both carry an IPv4 address in their last 32 bits. */
const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/
const NAT64 = /^64:ff9b::([0-9a-f]{1,4}):([0-9a-f]{1,4})$/

/** True for an address of the public internet; IPv4 in IPv6 is judged as the IPv4 address that it carries. */
export function isPublicAddress(address: string): boolean {
  const plain = carriedAddress(address)
  if (isIPv4(plain)) return !special.check(plain, 'ipv4')
  if (!isIPv6(plain)) return false
  return global6.check(plain, 'ipv6') && !special.check(plain, 'ipv6')
}

/** `::ffff:7f00:1` and `64:ff9b::7f00:1` are 127.0.0.1; a zone is left out. Other addresses stay as they are. */
function carriedAddress(address: string): string {
  const [bare = ''] = address.replace(/^\[|\]$/g, '').split('%', 1)
  if (!isIPv6(bare)) return bare
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const halves = MAPPED.exec(short) ?? NAT64.exec(short)
  if (!halves) return short
  return halves
    .slice(1)
    .flatMap((half) => {
      const n = Number.parseInt(half, 16)
      return [n >> 8, n & 0xff]
    })
    .join('.')
}

/** Addresses and subnets (`10.1.2.3`, `10.0.0.0/8`, `fd00::/8`) as a test. Undefined when one cannot be read. */
export function allowList(entries: readonly string[]): ((address: string) => boolean) | undefined {
  const allowed = new BlockList()
  for (const entry of entries) {
    const [net = '', bits, ...rest] = entry.split('/')
    const family = isIP(net)
    const max = family === 4 ? 32 : 128
    const prefix = bits === undefined ? max : Number(bits)
    if (family === 0 || rest.length > 0 || !/^\d{1,3}$/.test(bits ?? '0') || prefix > max)
      return undefined
    allowed.addSubnet(net, prefix, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (address) => {
    const plain = carriedAddress(address)
    return allowed.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6')
  }
}

/** Reached from this machine alone. */
export function isLoopbackHost(host: string): boolean {
  const plain = carriedAddress(host)
  return host === 'localhost' || plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}
