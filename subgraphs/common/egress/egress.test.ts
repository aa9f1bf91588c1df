import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { type Address, dialed, Egress, EgressError, type EgressOptions, type EgressRequest } from './egress.ts'

const PUBLIC = { address: '93.184.215.14', family: 4 } as const
const LOOPBACK = { address: '127.0.0.1', family: 4 } as const
const none = new AbortController().signal

/** A fake of the internet. It responds as each test sets, and records its requests. */
let answering: (request: IncomingMessage, response: ServerResponse) => void
const received: {
  host: string | undefined
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: string
}[] = []
const internet = createServer(async (request, response) => {
  let body = ''
  for await (const piece of request) body += piece
  const { method, url, headers } = request
  received.push({ host: headers.host, method, url, headers, body })
  answering(request, response)
})
/** A server that no request may reach. */
let canaryConnections = 0
const canary = createTcpServer((socket) => {
  canaryConnections += 1
  socket.destroy()
})
const readPort = (server: Pick<Server, 'address'>) => (server.address() as AddressInfo).port

beforeAll(async () => {
  for (const server of [internet, canary]) await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterAll(async () => {
  internet.closeAllConnections()
  for (const server of [internet, canary]) await new Promise((resolve) => server.close(resolve))
})
afterEach(() => {
  received.length = 0
  canaryConnections = 0
})

/**
 * Names and their addresses. Every dial is recorded; a dial to the public address ends at `internet`, one to any other
 * at the canary.
 */
function world(names: Readonly<Record<string, readonly (readonly Address[] | Error)[]>> = { 'public.test': [[PUBLIC]] }) {
  const dials: (readonly Address[] | null)[] = []
  const lookups: string[] = []
  const options: EgressOptions = {
    resolve: async (host) => {
      lookups.push(host)
      const resolutions = names[host] ?? [new Error('ENOTFOUND')]
      const resolution = resolutions[Math.min(lookups.filter((each) => each === host).length, resolutions.length) - 1]!
      if (resolution instanceof Error) throw resolution
      return resolution
    },
    dial: (addresses) => {
      dials.push(addresses)
      const port = readPort(addresses?.every(({ address }) => address === PUBLIC.address) ? internet : canary)
      return (_options, callback) => {
        const socket = connect(port, '127.0.0.1')
        socket.once('connect', () => callback(null, socket)).once('error', (error) => callback(error, null))
      }
    },
  }
  return { egress: new Egress(options), dials, lookups }
}

async function catchFailure(egress: Egress, request: string | Omit<EgressRequest, 'organizationId'>, signal = none): Promise<EgressError> {
  const failure = await egress
    .fetch({ organizationId: 'org_a', ...(typeof request === 'string' ? { url: request } : request) }, signal)
    .then(
      ({ status }) => new Error(`answered with ${status}`),
      (error: unknown) => error,
    )
  expect(failure).toBeInstanceOf(EgressError)
  return failure as EgressError
}

/** Names with internal addresses, or with none. */
const NAMES: Readonly<Record<string, readonly Address[]>> = {
  localhost: [LOOPBACK],
  'localhost.': [LOOPBACK],
  'app.localhost': [{ address: '::1', family: 6 }],
  'localtest.me': [LOOPBACK],
  'metadata.google.internal': [{ address: '169.254.169.254', family: 4 }],
  'mixed.test': [PUBLIC, LOOPBACK],
  'mixed-six.test': [PUBLIC, { address: '::ffff:127.0.0.1', family: 6 }],
  'wireserver.test': [{ address: '168.63.129.16', family: 4 }],
  'nat.test': [{ address: '64:ff9b::7f00:1', family: 6 }],
  'scoped.test': [{ address: 'fe80::1%lo', family: 6 }],
  'empty.test': [],
  'odd.test': [{ address: 'not an address', family: 4 }],
}

describe('Forbidden egress addresses', () => {
  const INSIDE = [
    ...['127.0.0.1', '127.0.0.1.', '127.1', '127.0.1', '2130706433', '017700000001', '0x7f000001', '0x7f.1', '0177.0.0.1', '0177.0.0.01'],
    ...['127.127.127.127', '①②⑦.⓪.⓪.①', '１２７.０.０.１', '127。0。0。1', '%31%32%37.0.0.1', '0', '0.0.0.0', '00', '0x0'],
    ...['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[::127.0.0.1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:127.0.0.1]'],
    ...[
      '[64:ff9b::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[64:ff9b:1::7f00:1]',
      '[2002:7f00:1::]',
      '[2002:7f00:0001::1]',
      '[2001:0:53aa:64c::80ff:fffe]',
    ],
    ...[
      '[fe80::1]',
      '[fec0::1]',
      '[fc00::1]',
      '[fd00:ec2::254]',
      '[ff02::1]',
      '[2001:db8::1]',
      '[100::1]',
      '[4000::1]',
      '[::ffff:0:127.0.0.1]',
    ],
    ...[
      '10.0.0.1',
      '172.16.0.1',
      '172.31.255.254',
      '192.168.1.1',
      '169.254.169.254',
      '169.254.170.2',
      '2852039166',
      '0xa9fea9fe',
      '0251.0376.0251.0376',
    ],
    ...[
      '[::ffff:169.254.169.254]',
      '100.64.0.1',
      '100.100.100.200',
      '168.63.129.16',
      '0xa83f8110',
      '192.0.0.192',
      '198.18.0.1',
      '203.0.113.7',
    ],
    ...['224.0.0.1', '240.0.0.1', '255.255.255.255', '192.88.99.1', '192.0.2.1'],
  ]

  it('are detected in every form, and nothing is dialed', async () => {
    const { egress, dials } = world(Object.fromEntries(Object.entries(NAMES).map(([name, addresses]) => [name, [addresses]])))
    const port = readPort(canary)
    const literals = INSIDE.flatMap((host) => [`http://${host}/`, `https://${host}/`, `http://${host}:443/`, `http:\\\\${host}/`])
    const forms = [
      ...literals.map((url) => [url, 'address'] as const),
      ...Object.keys(NAMES).map((name) => [`http://${name}/`, /localhost|internal/.test(name) ? 'address' : 'unreachable'] as const),
      ...['public.test', '127.0.0.1', 'localhost', '93.184.215.14'].map((host) => [`http://${host}:${port}/`, 'address'] as const),
      ...['file:///etc/passwd', 'ftp://public.test/', 'gopher://127.0.0.1:70/_x', 'data:text/plain,x', 'ws://public.test/'].map(
        (url) => [url, 'address'] as const,
      ),
      ...[
        'http://user@public.test/',
        'http://user:pass@public.test/',
        'http://public.test@127.0.0.1/',
        'http://127.0.0.1\\@public.test/',
      ].map((url) => [url, 'address'] as const),
      ...['http://public.test:22/', 'http://public.test:8080/', 'http://public.test:0/', 'https://public.test:6379/'].map(
        (url) => [url, 'address'] as const,
      ),
      ...[
        '',
        'http://',
        'http:///',
        '//public.test/',
        'public.test',
        'http://[::1',
        'http://a b/',
        `http://public.test/${'a'.repeat(8_192)}`,
      ].map((url) => [url, 'address'] as const),
    ]
    expect(forms.length).toBeGreaterThan(200)
    for (const [url, reason] of forms) expect([url, (await catchFailure(egress, url)).reason]).toEqual([url, reason])
    expect([dials, canaryConnections]).toEqual([[], 0])
  })

  it('are detected by the real connector and system names as well', async () => {
    const egress = new Egress()
    const port = readPort(canary)
    for (const url of [`http://127.0.0.1:${port}/`, `http://localhost:${port}/`, `http://[::ffff:127.0.0.1]:${port}/`, 'http://localhost/'])
      await catchFailure(egress, url)
    expect(canaryConnections).toBe(0)
  })

  it('produce errors without details about the target', async () => {
    const closed = createServer()
    await once(closed.listen(0, '127.0.0.1'), 'listening')
    const closedPort = readPort(closed)
    await new Promise((resolve) => closed.close(resolve))
    const allowed = new Set([`127.0.0.1:${closedPort}`, `127.0.0.1:${readPort(canary)}`, `127.0.0.1:${readPort(internet)}`])
    answering = (_request, response) => response.write('half')
    const { egress } = world({ 'inside.test': [[LOOPBACK]], 'unknown.test': [new Error('ENOTFOUND')] })
    const failures = [
      await catchFailure(egress, 'http://inside.test/'),
      await catchFailure(egress, 'http://unknown.test/'),
      await catchFailure(new Egress({ allowed }), `http://127.0.0.1:${closedPort}/`),
      await catchFailure(new Egress({ allowed }), `http://127.0.0.1:${readPort(canary)}/`),
      await catchFailure(new Egress({ allowed }), { url: `http://127.0.0.1:${readPort(internet)}/`, totalMs: 50 }),
    ]
    for (const { message, reason } of failures) expect([message, reason]).toEqual([failures[0]!.message, 'unreachable'])
    expect(failures[0]!.message).not.toMatch(/\d|test|refused|DNS/)
  })
})

describe('Egress check', () => {
  const may = (egress: Egress, url: string) => egress.mayReach(url, none)

  it('judges a URL by its form and by its DNS addresses, and dials nothing', async () => {
    const names = Object.entries({ 'public.test': [PUBLIC], ...NAMES }).map(([name, addresses]) => [name, [addresses]] as const)
    const { egress, dials } = world(Object.fromEntries(names))
    for (const url of ['https://public.test/hook', `https://${PUBLIC.address}/`]) expect([url, await may(egress, url)]).toEqual([url, true])
    for (const name of [...Object.keys(NAMES), 'unknown.test', '127.0.0.1', '[::1]', 'user@public.test', 'public.test:8080'])
      expect([name, await may(egress, `https://${name}/`)]).toEqual([name, false])
    expect(dials).toEqual([])
  })

  it('needs no DNS for a name of the operator, and ends when its caller disconnects', async () => {
    const egress = new Egress({ allowed: new Set(['minio:9000']), resolve: () => new Promise(() => undefined) })
    expect(await may(egress, 'http://minio:9000/')).toBe(true)
    const stop = new AbortController()
    const permission = egress.mayReach('https://public.test/', stop.signal)
    stop.abort(new Error('left'))
    await expect(permission).rejects.toThrow('left')
  })
})

describe('Egress connection', () => {
  it.each(['http', 'https'])('by %s to an address without a route fails normally, and ends no process', async (scheme) => {
    // The system refuses this connection at once, like one over IPv6 without a route.
    const egress = new Egress({ resolve: async () => [PUBLIC], dial: () => dialed([{ address: '255.255.255.255', family: 4 }]) })
    expect(await catchFailure(egress, `${scheme}://public.test/`)).toMatchObject({ reason: 'unreachable', cause: { syscall: 'connect' } })
  })

  it('uses the checked addresses, however DNS answers later', async () => {
    answering = (_request, response) => response.end('hello')
    const { egress, dials, lookups } = world({ 'rebinding.test': [[PUBLIC], [LOOPBACK]] })
    const { status, body, url } = await egress.fetch({ organizationId: 'org_a', url: 'http://rebinding.test/a?b=c#d' }, none)
    expect([status, body.toString(), url]).toEqual([200, 'hello', 'http://rebinding.test/a?b=c#d'])
    expect([lookups, dials]).toEqual([['rebinding.test'], [[PUBLIC]]])
    expect(received).toMatchObject([{ host: 'rebinding.test', url: '/a?b=c', headers: { 'accept-encoding': 'identity' } }])
    // The next request resolves the name again, and is refused.
    expect((await catchFailure(egress, 'http://rebinding.test/')).reason).toBe('unreachable')
    expect(canaryConnections).toBe(0)
  })

  it('of the real connector uses the checked addresses without a second DNS lookup', async () => {
    const options = { hostname: 'no-such-name.test', protocol: 'http:', port: String(readPort(internet)) }
    const socket = await new Promise<Socket>((resolve, reject) =>
      dialed([LOOPBACK])(options, (error, created) => (error ? reject(error) : resolve(created!))),
    )
    expect([socket.remoteAddress, socket.remotePort]).toEqual(['127.0.0.1', readPort(internet)])
    socket.destroy()
  })

  it('to a public literal address needs no DNS', async () => {
    answering = (_request, response) => response.end()
    const { egress, dials, lookups } = world()
    await egress.fetch({ organizationId: 'org_a', url: `http://${PUBLIC.address}/` }, none)
    expect([lookups, dials]).toEqual([[], [[PUBLIC]]])
  })

  it('to a host of the operator is opened anywhere, without a proxy of the environment', async () => {
    const { HTTP_PROXY, http_proxy } = process.env
    process.env.HTTP_PROXY = process.env.http_proxy = `http://127.0.0.1:${readPort(canary)}`
    try {
      answering = (_request, response) => response.end('inside')
      const egress = new Egress({ allowed: new Set([`localhost:${readPort(internet)}`]) })
      expect((await egress.fetch({ organizationId: 'org_a', url: `http://localhost:${readPort(internet)}/` }, none)).body.toString()).toBe(
        'inside',
      )
      expect(egress.allows(`http://127.0.0.1:${readPort(internet)}/`)).toBe(false)
    } finally {
      for (const [name, value] of Object.entries({ HTTP_PROXY, http_proxy })) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    }
    expect(canaryConnections).toBe(0)
  })

  it('sends method, headers and body, without hop-by-hop headers', async () => {
    answering = (_request, response) => response.writeHead(201, { 'x-answer': 'yes' }).end()
    const { egress } = world()
    const headers = { Authorization: 'Bearer x', 'Content-Type': 'application/json', Host: 'inside.test', 'Transfer-Encoding': 'chunked' }
    const response = await egress.fetch(
      { organizationId: 'org_a', url: 'http://public.test/', method: 'POST', headers, body: '{"a":1}' },
      none,
    )
    expect([response.status, response.headers['x-answer']]).toEqual([201, 'yes'])
    expect(received).toMatchObject([{ method: 'POST', host: 'public.test', body: '{"a":1}', headers: { authorization: 'Bearer x' } }])
    expect(received[0]!.headers['transfer-encoding']).toBeUndefined()
  })
})

describe('Egress redirect', () => {
  const to = (location: string, status = 302) => {
    answering = (request, response) => {
      if (request.url === '/start') response.writeHead(status, { location }).end('not read')
      else response.end('arrived')
    }
  }

  it.each([
    ...['http://127.0.0.1/', 'http://[::1]/', 'http://2130706433/', '//169.254.169.254/latest/meta-data/', 'http://inside.test/'],
    ...['http://public.test:8080/', 'file:///etc/passwd', 'http://user@public.test/', 'http://[', 'gopher://public.test/'],
  ])('to %s is not followed', async (location) => {
    to(location)
    const { egress, dials } = world({ 'public.test': [[PUBLIC]], 'inside.test': [[LOOPBACK]] })
    expect((await catchFailure(egress, 'http://public.test/start')).reason).toBe('unreachable')
    expect([dials.length, received.length, canaryConnections]).toEqual([1, 1, 0])
  })

  it('to the name checked before is checked again', async () => {
    to('/next')
    const { egress } = world({ 'public.test': [[PUBLIC], [LOOPBACK]] })
    expect((await catchFailure(egress, 'http://public.test/start')).reason).toBe('unreachable')
    expect([received.length, canaryConnections]).toEqual([1, 0])
  })

  it('is followed only where the caller allows it at the time: before DNS, and before the request', async () => {
    const refusal = new Error('the policy has changed')
    for (const [most, lookedUp, requests] of [
      [0, [], 0],
      [1, ['public.test'], 0],
      [2, ['public.test'], 1],
      [3, ['public.test', 'other.test'], 1],
    ] as const) {
      to('https://other.test/next')
      received.length = 0
      const { egress, lookups } = world({ 'public.test': [[PUBLIC]], 'other.test': [[PUBLIC]] })
      const urls: string[] = []
      const authorize = async (url: string) => {
        urls.push(url)
        if (urls.length > most) throw refusal
      }
      await expect(egress.fetch({ organizationId: 'org_a', url: 'http://public.test/start', authorize }, none)).rejects.toBe(refusal)
      expect([lookups, received.length]).toEqual([lookedUp, requests])
      expect(urls.at(-1)).toBe(most < 2 ? 'http://public.test/start' : 'https://other.test/next')
    }
  })

  it('is followed three times, and a loop ends', async () => {
    let count = 0
    answering = (request, response) => {
      const left = Number(request.url!.slice(1))
      count += 1
      if (left > 0) response.writeHead(307, { location: `/${left - 1}` }).end()
      else response.end('arrived')
    }
    const { egress } = world()
    expect((await egress.fetch({ organizationId: 'org_a', url: 'http://public.test/3' }, none)).url).toBe('http://public.test/0')
    count = 0
    expect((await catchFailure(egress, 'http://public.test/1000000')).reason).toBe('unreachable')
    expect(count).toBe(4)
    const { status, headers } = await egress.fetch({ organizationId: 'org_a', url: 'http://public.test/2', maxRedirects: 0 }, none)
    expect([status, headers.location]).toEqual([307, '/1'])
  })

  it('never leads from https to http', async () => {
    to('http://public.test/next')
    // The fake internet speaks no TLS: the test's connector serves https without it.
    const { egress } = world()
    expect((await catchFailure(egress, 'https://public.test/start')).reason).toBe('unreachable')
    expect(received.map(({ url }) => url)).toEqual(['/start'])
  })

  it('sends no keys, cookies or body to another origin', async () => {
    to('http://other.test/next')
    const { egress } = world({ 'public.test': [[PUBLIC]], 'other.test': [[PUBLIC]] })
    const headers = { authorization: 'Bearer x', cookie: 'a=b', 'x-api-key': 'k', accept: 'image/png' }
    await egress.fetch({ organizationId: 'org_a', url: 'http://public.test/start', headers }, none)
    expect(
      received.map(({ headers: { authorization, cookie, accept, 'x-api-key': key } }) => [authorization, cookie, key, accept]),
    ).toEqual([
      ['Bearer x', 'a=b', 'k', 'image/png'],
      [undefined, undefined, undefined, 'image/png'],
    ])
    to('http://other.test/next', 307)
    await catchFailure(egress, { url: 'http://public.test/start', method: 'POST', body: 'secret' })
    expect(received.at(-1)).toMatchObject({ host: 'public.test' })
  })

  it('sends them to the same origin, and the body where the status says so', async () => {
    const { egress } = world()
    const request = {
      url: 'http://public.test/start',
      method: 'POST',
      headers: { authorization: 'x', 'content-type': 'text/plain' },
      body: 'b',
    } as const
    to('/next', 308)
    await egress.fetch({ organizationId: 'org_a', ...request }, none)
    to('/next', 303)
    await egress.fetch({ organizationId: 'org_a', ...request }, none)
    expect(
      received
        .filter(({ url }) => url === '/next')
        .map(({ method, body, headers }) => [method, body, headers.authorization, headers['content-type']]),
    ).toEqual([
      ['POST', 'b', 'x', 'text/plain'],
      ['GET', '', 'x', undefined],
    ])
  })
})

describe('Egress response', () => {
  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', (bytes: Buffer) => bytes],
  ] as const)('compressed as %s is decompressed', async (encoding, pack) => {
    answering = (_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(pack(Buffer.from('hello')))
    expect((await world().egress.fetch({ organizationId: 'org_a', url: 'http://public.test/' }, none)).body.toString()).toBe('hello')
  })

  it('without content is accepted with any content encoding', async () => {
    const { egress } = world()
    for (const [method, status] of [
      ['HEAD', 200],
      ['GET', 204],
      ['GET', 200],
    ] as const) {
      answering = (_request, response) =>
        response.writeHead(status, { 'content-encoding': 'gzip', ...(method === 'HEAD' && { 'content-length': 2 ** 30 }) }).end()
      const response = await egress.fetch({ organizationId: 'org_a', url: 'http://public.test/', method }, none)
      expect([response.status, response.body.length]).toEqual([status, 0])
    }
  })

  it('with another or a wrong encoding is refused', async () => {
    const { egress } = world()
    for (const encoding of ['zstd', 'gzip, gzip', 'gzip', 'constructor']) {
      answering = (_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end('hello')
      expect((await catchFailure(egress, 'http://public.test/')).reason).toBe('unreachable')
    }
  })

  it('is limited in decompressed, announced and received size', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20))
    const { egress } = world()
    const responders: ((response: ServerResponse) => void)[] = [
      (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
      (response) => response.writeHead(200, { 'content-length': 2 ** 31 }).flushHeaders(),
      (response) => {
        const more = () => {
          while (!response.destroyed && response.write(Buffer.alloc(2 ** 16)));
          if (!response.destroyed) response.once('drain', more)
        }
        more()
      },
      // An endless series of empty gzip members.
      (response) => {
        const member = Buffer.concat(Array.from({ length: 1_000 }, () => gzipSync('')))
        response.writeHead(200, { 'content-encoding': 'gzip' })
        const more = () => {
          while (!response.destroyed && response.write(member));
          if (!response.destroyed) response.once('drain', more)
        }
        more()
      },
    ]
    for (const respond of responders) {
      answering = (_request, response) => respond(response)
      expect((await catchFailure(egress, { url: 'http://public.test/', maxBytes: 2 ** 20 })).reason).toBe('too_large')
    }
  })

  it('with endless headers, or outside HTTP, is refused', async () => {
    const { egress } = world()
    answering = (_request, { socket }) => {
      socket!.write('HTTP/1.1 200 OK\r\n')
      const more = () => {
        while (!socket!.destroyed && socket!.write(`x-${'a'.repeat(1_000)}: b\r\n`));
        if (!socket!.destroyed) socket!.once('drain', more)
      }
      more()
    }
    expect((await catchFailure(egress, 'http://public.test/')).reason).toBe('unreachable')
    answering = (_request, { socket }) => socket!.end('SSH-2.0-OpenSSH_9.6\r\n')
    expect((await catchFailure(egress, 'http://public.test/')).reason).toBe('unreachable')
    // A body that is shorter than its announced length.
    answering = (_request, response) => response.writeHead(200, { 'content-length': 100 }).write('short', () => response.destroy())
    expect((await catchFailure(egress, 'http://public.test/')).reason).toBe('unreachable')
  })

  it('must arrive within the time limit, however slowly it drips', async () => {
    const { egress } = world()
    const drips: NodeJS.Timeout[] = []
    const closed = new Promise<void>((resolve) => {
      answering = (request, response) => {
        request.socket.once('close', () => resolve())
        drips.push(setInterval(() => response.write('x'), 5))
      }
    })
    expect((await catchFailure(egress, { url: 'http://public.test/', totalMs: 1_000 })).reason).toBe('unreachable')
    await closed
    for (const drip of drips) clearInterval(drip)
  })

  it('ends with the signal of the caller at any wait', async () => {
    const reason = new Error('the caller has disconnected')
    const stop = new AbortController()
    answering = (_request, response) => {
      response.write('x')
      setImmediate(() => stop.abort(reason))
    }
    await expect(world().egress.fetch({ organizationId: 'org_a', url: 'http://public.test/' }, stop.signal)).rejects.toBe(reason)
    await expect(world().egress.fetch({ organizationId: 'org_a', url: 'http://public.test/' }, stop.signal)).rejects.toBe(reason)
    const atDns = new AbortController()
    const waiting = new Egress({ resolve: () => new Promise(() => undefined) }).fetch(
      { organizationId: 'org_a', url: 'http://public.test/', totalMs: 600_000 },
      atDns.signal,
    )
    atDns.abort(reason)
    await expect(waiting).rejects.toBe(reason)
  })

  it('is streamed to a reader, and its connection ends when the reader stops', async () => {
    const closed = new Promise<void>((resolve) => {
      answering = (request, response) => {
        request.socket.once('close', () => resolve())
        response.write('first')
      }
    })
    const { body, status } = await world().egress.open({ organizationId: 'org_a', url: 'http://public.test/', totalMs: 60_000 }, none)
    expect(status).toBe(200)
    for await (const piece of body) {
      expect(Buffer.from(piece).toString()).toBe('first')
      break
    }
    await closed
  })

  it('slots are limited; one organization leaves slots to others, and its own calls wait', async () => {
    const responses: ServerResponse[] = []
    answering = (_request, response) => void responses.push(response)
    const { egress } = world()
    const fetching = Array.from({ length: 96 }, () => egress.fetch({ organizationId: 'org_a', url: 'http://public.test/' }, none))
    expect((await catchFailure(egress, 'http://public.test/')).reason).toBe('busy')
    await eventually(() => responses.length === 32)
    const other = egress.fetch({ organizationId: 'org_b', url: 'http://public.test/' }, none)
    await eventually(() => responses.length === 33)
    responses[32]!.end('y')
    expect((await other).body.toString()).toBe('y')
    answering = (_request, response) => response.end('x')
    for (const response of responses) response.end('x')
    await Promise.all(fetching)
  })
})
