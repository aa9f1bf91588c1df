/**
 * The child imports this module before any reader. Later modules can use only the parts of Node that readers need.
 * Node's permission model does not cover the network, and the namespace of `network-isolation.ts` is not available on
 * every system.
 */
import { isBuiltin, registerHooks } from 'node:module'
import { Server, Socket } from 'node:net'

/**
 * The Node modules that readers and their packages load. None of them opens a connection, starts a process or runs
 * other code.
 */
const ALLOWED: ReadonlySet<string> = new Set(
  'assert async_hooks buffer console constants crypto diagnostics_channel events fs fs/promises os path perf_hooks process punycode querystring stream stream/promises stream/web string_decoder timers timers/promises url util util/types zlib'.split(
    ' ',
  ),
)

function isDenied(name: string): boolean {
  return isBuiltin(name) && !ALLOWED.has(name.replace(/^node:/, ''))
}

function denied(name: string): never {
  throw new Error(`readers of documents may not use ${name}`)
}

registerHooks({
  resolve(name, context, next) {
    return isDenied(name) ? denied(name) : next(name, context)
  },
})

const { getBuiltinModule } = process
const guarded: Record<string, unknown> = {
  // Behaves as if the module did not exist. pdf.js probes optional modules in this way.
  getBuiltinModule: (name: string) => (isDenied(name) ? undefined : getBuiltinModule(name)),
}
for (const name of ['binding', '_linkedBinding', 'dlopen', 'kill', '_kill', '_debugProcess'])
  guarded[name] = () => denied(`process.${name}`)
for (const [name, value] of Object.entries(guarded)) Object.defineProperty(process, name, { value, writable: false, configurable: false })
for (const name of ['fetch', 'WebSocket', 'EventSource', 'Worker', 'BroadcastChannel']) Reflect.deleteProperty(globalThis, name)
// Standard input is a socket, whose class could open another one.
for (const [prototype, name] of [
  [Socket.prototype, 'connect'],
  [Server.prototype, 'listen'],
] as const)
  Object.defineProperty(prototype, name, { value: () => denied(`a socket's ${name}`), writable: false, configurable: false })
