import type { LookupAddress, LookupOptions } from 'node:dns'
import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { MillraceError } from '../model/errors.ts'
import { type Problems, show } from '../model/problems.ts'
import { allowList, isPublicAddress } from './address.ts'

/** Decides about one address at the moment of connecting. */
export type AddressGuard = (address: string) => boolean

export function addressGuard(allowPrivate: unknown, found: Problems): AddressGuard {
  if (allowPrivate === true) return () => true
  if (allowPrivate === false) return isPublicAddress
  const listed = isTexts(allowPrivate) ? allowList(allowPrivate) : undefined
  if (listed) return (address) => isPublicAddress(address) || listed(address)
  const got = Array.isArray(allowPrivate)
    ? `[${allowPrivate.map(show).join(',')}]`.slice(0, 200)
    : show(allowPrivate)
  found.add(
    `allowPrivateAddresses: expected true, false, or addresses and subnets such as "10.0.0.0/8", got ${got}`,
  )
  return isPublicAddress
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

/**
 * A lookup that answers allowed addresses only. Node connects to what this function answers and asks nobody again, so
 * a name that changes its address between check and connect (DNS rebinding) gains nothing. One forbidden address
 * refuses the name: which of several Node will try is not ours to know.
 */
export function guardedLookup(
  isAllowed: AddressGuard,
  inner: LookupFunction = systemLookup as LookupFunction,
): LookupFunction {
  return (hostname, options: LookupOptions, callback) => {
    inner(hostname, options, (error, found, family) => {
      if (error) return callback(error, found, family)
      const addresses: readonly LookupAddress[] = Array.isArray(found)
        ? found
        : [{ address: found, family: family ?? isIP(found) }]
      const forbidden = addresses.find(({ address }) => !isAllowed(address))
      if (forbidden || addresses.length === 0)
        return callback(addressRefused(hostname, forbidden?.address), '', 0)
      callback(null, found, family)
    })
  }
}

export function addressRefused(host: string, address: string | undefined): MillraceError {
  const what =
    address === undefined ? 'has no address' : `is ${address}, which is not a public address`
  return new MillraceError(
    'MILLRACE_ADDRESS_REFUSED',
    `host ${host} ${what}; to allow it, set httpTarget(…, { allowPrivateAddresses: ["${address ?? '10.0.0.0/8'}"] })`,
    { fields: { host, address } },
  )
}
