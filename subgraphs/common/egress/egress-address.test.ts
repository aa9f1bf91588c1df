import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isPublicAddress, judgedAddress, parseEgressAllow } from './egress-address.ts'

describe('Egress address', () => {
  it.each(['8.8.8.8', '93.184.215.14', '168.63.129.15', '2606:4700:4700::1111', '2a00:1450:4001::1'])('%s is public', (address) =>
    expect(isPublicAddress(address)).toBe(true),
  )

  it.each([
    ...[
      '0.0.0.0',
      '10.0.0.1',
      '100.64.0.1',
      '100.100.100.200',
      '127.0.0.1',
      '169.254.169.254',
      '172.31.255.255',
      '192.0.0.192',
      '192.0.2.1',
    ],
    ...['192.88.99.1', '192.168.0.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ...['168.63.129.16', '::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '64:ff9b::7f00:1', '64:ff9b:1::7f00:1'],
    ...[
      '2001::1',
      '2001:db8::1',
      '2002:7f00:1::',
      'fc00::1',
      'fd00:ec2::254',
      'fe80::1',
      'fe80::1%lo',
      'fec0::1',
      'ff02::1',
      '100::1',
      '4000::1',
    ],
    ...['2606:4700::1%1', 'localhost', '', '1.2.3', '8.8.8.8/32'],
  ])('%s is not', (address) => expect(isPublicAddress(address)).toBe(false))

  it('is internal in every notation of every internal address', () => {
    const octet = fc.integer({ min: 0, max: 255 })
    const inside = fc.oneof(
      fc.tuple(fc.constantFrom(10, 127, 0), octet, octet, octet),
      fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
      fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
      fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
      fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
    )
    const forms = fc.constantFrom(
      (parts: readonly number[]) => parts.join('.'),
      (parts: readonly number[]) => `${parts.join('.')}.`,
      (parts: readonly number[]) => parts.map((part) => `0${part.toString(8)}`).join('.'),
      (parts: readonly number[]) => parts.map((part) => `0x${part.toString(16)}`).join('.'),
      (parts: readonly number[]) => String(parts.reduce((sum, part) => sum * 256 + part, 0)),
      (parts: readonly number[]) => `0x${parts.reduce((sum, part) => sum * 256 + part, 0).toString(16)}`,
      (parts: readonly number[]) => `${parts[0]}.${parts[1]! * 65_536 + parts[2]! * 256 + parts[3]!}`,
      (parts: readonly number[]) => `[::ffff:${parts.join('.')}]`,
      (parts: readonly number[]) => `[64:ff9b::${parts.join('.')}]`,
      (parts: readonly number[]) => `[::${parts.join('.')}]`,
    )
    fc.assert(
      fc.property(inside, forms, fc.constantFrom('http', 'https'), (parts, form, scheme) => {
        expect(judgedAddress(`${scheme}://${form(parts)}/a`, new Set())).toBeNull()
      }),
    )
  })
})

describe('Ambiguous egress address', () => {
  it.each([
    ...[
      'http://public.test\\@127.0.0.1/',
      'http:\\\\public.test/',
      'http://public.test\t@127.0.0.1/',
      'ht\ntp://public.test/',
      'http://public.test/\r\nHost: a',
    ],
    ...[
      'http://0127.0.0.1/',
      'http://134744072/',
      'http://0x8080808/',
      'http://8.8.2056/',
      'http://8.8.8.8./',
      'http://%38.8.8.8/',
      'http://８.8.8.8/',
    ],
  ])('%j is refused', (url) => expect(judgedAddress(url, new Set())).toBeNull())

  it.each([
    ...['http://8.8.8.8', 'https://8.8.8.8:443/a?b#c', 'HTTP://8.8.8.8/', 'http://[2606:4700:4700:0::1111]/', 'https://مثال.test/قط.png'],
    ...['http://public.test/a b.png', 'http://public.test./', 'http://public.test/a@b:c'],
  ])('%j is accepted', (url) => expect(judgedAddress(url, new Set())).toMatchObject({ isNamed: false }))
})

describe('Egress to internal names', () => {
  const NAMES = [
    'localhost',
    'a.localhost',
    'metadata.google.internal',
    'host.docker.internal',
    'printer.local',
    'router.lan',
    'nas.home.arpa',
  ]
    .concat(['1.0.0.127.in-addr.arpa', 'kubernetes.default.svc', 'vault.service.consul', 'intern.corp', 'ldap.intranet', 'me.localdomain'])
    .concat(['minio', 'metadata', 'a..internal', 'public.test..'])

  it('is refused in every notation', () => {
    const ways = [
      (name: string) => name,
      (name: string) => `${name}.`,
      (name: string) => name.toUpperCase(),
      (name: string) => `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
      (name: string) => name.replaceAll('.', '。'),
      (name: string) => name.replaceAll('.', '．'),
      (name: string) => name.replace(/[a-z]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)),
      (name: string) => name.replace(/^./, '$&\u00ad'),
      (name: string) => `user@${name}`,
      (name: string) => `${name}:80`,
    ]
    for (const name of NAMES)
      for (const way of ways)
        for (const scheme of ['http', 'HTTPS']) {
          const url = `${scheme}://${way(name)}/latest/meta-data`
          expect([url, judgedAddress(url, new Set())]).toEqual([url, null])
        }
  })

  it('is allowed when the operator has named it', () => {
    const allowed = parseEgressAllow('minio:9000,metadata.google.internal:80,LOCALHOST:443')
    for (const url of ['http://MINIO:9000/', 'http://metadata.google.internal/', 'https://localhost/'])
      expect([url, judgedAddress(url, allowed)?.isNamed]).toEqual([url, true])
    for (const url of ['http://minio/', 'https://metadata.google.internal/', 'http://localhost/', 'https://localhost./'])
      expect([url, judgedAddress(url, allowed)]).toEqual([url, null])
  })

  it('is decided by the end of the name, not by the rest', () => {
    for (const url of ['http://localhost.public.test/', 'http://internal.test/', 'http://local.test./', 'http://home.xn--mgbaam7a8h/'])
      expect([url, judgedAddress(url, new Set())?.isNamed]).toEqual([url, false])
  })
})

describe('Egress allowlist of the operator', () => {
  it('names hosts with their ports, in any notation', () => {
    const allowed = parseEgressAllow(' images.internal:9000, 127.1:8080,[::1]:81 ,MINIO:80,b:443')
    expect([...allowed]).toEqual(['images.internal:9000', '127.0.0.1:8080', '[::1]:81', 'minio:80', 'b:443'])
    for (const url of ['http://images.internal:9000/a', 'http://0x7f000001:8080', 'https://[0:0::1]:81', 'http://minio/x', 'https://b'])
      expect([url, judgedAddress(url, allowed)?.isNamed]).toEqual([url, true])
    for (const url of ['http://images.internal:9001/', 'http://127.0.0.2:8080', 'ftp://minio:80', 'http://user@minio', 'http://minio:443'])
      expect([url, judgedAddress(url, allowed)?.isNamed ?? false]).toEqual([url, false])
  })

  it('is empty without an entry', () => expect(parseEgressAllow(' , ').size).toBe(0))

  it('reports everything that is not a host with a port at once', () => {
    const wrong = ['host', 'host:', 'host:0', 'host:70000', 'http://host:80', 'host:80/path', 'user@host:80', '*:80 x:1', '::1:80']
    expect(() => parseEgressAllow(['good:80', ...wrong].join())).toThrow(`these are not: ${wrong.join(', ').replace('user@', '…@')}`)
  })
})
