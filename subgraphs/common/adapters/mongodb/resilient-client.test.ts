import type { Socket } from 'node:net'
import { MongoNetworkTimeoutError } from 'mongodb'
import { expect, it, onTestFinished } from 'vitest'
import { onEngine } from '../../../../test/support/engines/engine-url.ts'
import { MongoProxy } from '../../../../test/support/engines/mongodb-proxy.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { ResilientClient } from './resilient-client.ts'

/**
 * Internals of the driver. The tests cannot reach sockets in another way, and a socket is at the wrong moment by chance
 * only once in hundreds of outages.
 */
interface DriverInternals {
  /** Undefined while the client is closed. */
  readonly topology?: { readonly s: { readonly servers: ReadonlyMap<string, { readonly monitor: Monitor; readonly pool: Pool }> } }
}
interface Monitor {
  readonly connection: { readonly socket: Socket }
  requestCheck(): void
}
interface Pool {
  readonly connections: { toArray(): readonly { readonly socket: Socket }[] }
}

const serverOf = (client: ResilientClient) => [...((client as unknown as DriverInternals).topology?.s.servers.values() ?? [])][0]

const HEARTBEAT_LIMIT_MS = 1_500
/** Shorter than the limit of an operation: an operation that finds no server fails by itself. */
const CONNECT_MS = 1_000
const OPERATION_MS = 3_000
/** The driver does not check a server again within this time, even on request. */
const MIN_HEARTBEAT_MS = 500

await onEngine('KIS_TEST_MONGODB_URL', 'Resilient MongoDB client', (url) => {
  async function connected() {
    const proxy = await MongoProxy.start(url)
    const client = new ResilientClient(proxy.through(url), {
      heartbeatLimitMs: HEARTBEAT_LIMIT_MS,
      heartbeatFrequencyMS: 60_000,
      connectTimeoutMS: CONNECT_MS,
      serverSelectionTimeoutMS: CONNECT_MS,
    })
    onTestFinished(async () => {
      await client.close()
      await proxy[Symbol.asyncDispose]()
    })
    await client.connect()
    const ping = () => client.withTimeout(() => client.db('admin').command({ hello: 1 }), OPERATION_MS)
    await ping()
    return { proxy, client, ping, server: serverOf(client)! }
  }

  const resolves = (ping: () => Promise<unknown>) =>
    ping().then(
      () => true,
      () => false,
    )

  it('finds a server again although its monitor has stopped permanently', async () => {
    const { proxy, client, ping, server } = await connected()
    await new Promise((resolve) => setTimeout(resolve, MIN_HEARTBEAT_MS))
    let polls = 0
    client.on('serverHeartbeatStarted', () => polls++)
    server.monitor.connection.socket.destroy()
    server.monitor.requestCheck()
    expect(polls).toBe(1)
    await proxy.stop()
    await expect(ping()).rejects.toThrow()
    await proxy.resume()
    await eventually(() => resolves(ping))
  })

  it('ends an operation that the driver never ends, and frees its connection', async () => {
    const { client, ping, server } = await connected()
    const [{ socket }] = server.pool.connections.toArray() as [{ socket: Socket }]
    socket.destroy()
    await expect(ping()).rejects.toThrow(MongoNetworkTimeoutError)
    // Until all connections are replaced, another connection of the same pool responds.
    await eventually(async () => {
      const pool = serverOf(client)?.pool
      return pool !== undefined && pool !== server.pool && (await resolves(ping))
    })
  })
})
