/**
 * Runs like a child of the parser, tries to escape the sandbox, and prints the result of each attempt. It reads the
 * ports of the test's servers, as JSON, from standard input.
 */
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

type Ways = Readonly<Record<string, (port: number) => unknown>>
type Any = ReturnType<typeof JSON.parse>

const { port, isGuarded } = JSON.parse(await text(process.stdin)) as { port: number; isGuarded: boolean }
const SocketOfStdin = process.stdin.constructor as Any
if (isGuarded) await import('../no-network.ts')

/** Resolves when the socket is connected, and rejects on an error. */
async function connected(socket: Any): Promise<string> {
  await Promise.race([once(socket, 'connect'), once(socket, 'secureConnect')])
  return 'connected'
}
const load = (name: string) => import(name) as Promise<Any>
const global = globalThis as Any
const inner = process as Any

const WAYS: Ways = {
  net: async (port) => connected((await load('node:net')).connect(port, '127.0.0.1')),
  'net without a scheme': async (port) => connected((await load('net')).connect(port, '127.0.0.1')),
  tls: async (port) => connected((await load('node:tls')).connect(port, '127.0.0.1')),
  http: async (port) => once((await load('node:http')).get(`http://127.0.0.1:${port}/`), 'response').then(() => 'answered'),
  https: async (port) => once((await load('node:https')).get(`https://127.0.0.1:${port}/`), 'response').then(() => 'answered'),
  http2: async (port) => connected((await load('node:http2')).connect(`http://127.0.0.1:${port}`)),
  dgram: async (port) => {
    const socket = (await load('node:dgram')).createSocket('udp4')
    socket.send('x', port, '127.0.0.1')
    await once(socket, 'listening')
    return 'sent'
  },
  dns: async () => (await load('node:dns/promises')).lookup('localhost', { all: true }),
  undici: async () => Object.keys(await load('undici')).length,
  fetch: async (port) => (await global.fetch(`http://127.0.0.1:${port}/`)).status,
  WebSocket: (port) => connected(new global.WebSocket(`ws://127.0.0.1:${port}/`)),
  'the socket of standard input': (port) => connected(new SocketOfStdin().connect(port, '127.0.0.1')),
  getBuiltinModule: (port) => connected(inner.getBuiltinModule('node:net').connect(port, '127.0.0.1')),
  createRequire: async (port) =>
    connected(
      (await load('node:module'))
        .createRequire(import.meta.url)('net')
        .connect(port, '127.0.0.1'),
    ),
  'process.binding': () => Object.keys(inner.binding('tcp_wrap')),
  'process.dlopen': () => inner.dlopen({ exports: {} }, '/lib/x.so'),
  child_process: async () => String((await load('node:child_process')).execFileSync('/bin/true')),
  worker_threads: async () => once(new (await load('node:worker_threads')).Worker('1', { eval: true }), 'online'),
  inspector: async () => (await load('node:inspector')).open(0),
  vm: async () => (await load('node:vm')).runInThisContext('1'),
  eval: () => global.eval('1'),
  'reading /etc/passwd': async () => (await load('node:fs')).readFileSync('/etc/passwd', 'utf8').length,
  writing: async () => (await load('node:fs')).writeFileSync('/tmp/kis-escape', 'x'),
}

const outcomes: Record<string, string> = {}
for (const [name, attempt] of Object.entries(WAYS)) {
  const late = new Promise<never>((_resolve, reject) => setTimeout(() => reject(new Error('nothing came')), 2_000).unref())
  outcomes[name] = await Promise.race([(async () => attempt(port))(), late]).then(
    () => 'OUT',
    (error: unknown) => String(error).split('\n')[0]!.slice(0, 200),
  )
}
process.stdout.write(JSON.stringify(outcomes), () => process.exit(0))
