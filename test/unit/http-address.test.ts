import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowList, isLoopbackHost, isPublicAddress } from '../../src/http/address.ts'
import { addressGuard } from '../../src/http/guarded-lookup.ts'
import { problems } from '../../src/model/problems.ts'

test('addresses of the public internet are public', () => {
  const addresses = [
    '1.1.1.1',
    '8.8.8.8',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.0.1',
    '172.32.0.1',
    '198.17.255.255',
    '198.20.0.0',
    '192.167.0.1',
    '223.255.255.255',
    '2606:4700::1111',
    '2a00:1450::1',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
    '2001:4860:4860::8888',
  ]
  for (const address of addresses) assert.equal(isPublicAddress(address), true, address)
})

test('everything else is not, however it is written', () => {
  const addresses = [
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.255',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '[::1]',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd00:ec2::254',
    'ff02::1',
    'fec0::1',
    '2001:db8::1',
    '2001::1',
    '2002:7f00:1::',
    '3fff::1',
    '100::1',
    '64:ff9b:1::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:a00:1',
    '64:ff9b::10.0.0.1',
    '64:ff9b::7f00:1',
    '::127.0.0.1',
    '',
    'nonsense',
    '127.1',
  ]
  for (const address of addresses) assert.equal(isPublicAddress(address), false, address)
})

test('an allow list takes addresses and subnets of both families, and refuses what it cannot read', () => {
  const allowed = allowList(['10.0.0.0/8', '127.0.0.1', 'fd00::/8', '::1'])
  for (const address of ['10.9.9.9', '127.0.0.1', 'fd12::1', '::1', '::ffff:10.1.1.1']) {
    assert.equal(allowed?.(address), true, address)
  }
  for (const address of ['11.0.0.1', '127.0.0.2', 'fe80::1', ''])
    assert.equal(allowed?.(address), false, address)
  for (const entry of [
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    'host',
    '10.0.0.0/-1',
    '::/129',
  ]) {
    assert.equal(allowList([entry]), undefined, entry)
  }
})

test('what is allowed besides takes nothing from the public internet', () => {
  const isAllowed = addressGuard(['10.0.0.0/8'], problems('test'))
  assert.deepEqual(['8.8.8.8', '10.1.2.3', '127.0.0.1'].map(isAllowed), [true, true, false])
})

test('loopback hosts are told from all others', () => {
  for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]', '::ffff:127.0.0.1']) {
    assert.equal(isLoopbackHost(host), true, host)
  }
  for (const host of ['0.0.0.0', '::', '', 'localhost.evil.test', '10.0.0.1', '127.evil.test']) {
    assert.equal(isLoopbackHost(host), false, host)
  }
})
