import type { Socket } from 'node:net'
import { MongoNetworkTimeoutError } from 'mongodb'
import { expect, it, onTestFinished } from 'vitest'
import { onEngine } from '../../../../test/support/engines/engine-url.ts'
import { MongoProxy } from '../../../../test/support/engines/mongodb-proxy.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { ResilientClient } from './resilient-client.ts'

/**
 * What this reaches into of the driver: sockets cannot be had otherwise, and by chance one is met at the wrong moment
 * once in hundreds of outages.
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
/** Shorter than the limit of an operation: one that finds no server fails by itself. */
const CONNECT_MS = 1_000
const OPERATION_MS = 3_000
/** So soon after a look the driver does not look again, whatever is asked. */
const MIN_HEARTBEAT_MS = 500

await onEngine('KIS_TEST_MONGODB_URL', 'a MongoDB client that outlives its driver’s faults', (url) => {
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
    const ask = () => client.withTimeout(() => client.db('admin').command({ hello: 1 }), OPERATION_MS)
    await ask()
    return { proxy, client, ask, server: serverOf(client)! }
  }

  const answers = (ask: () => Promise<unknown>) =>
    ask().then(
      () => true,
      () => false,
    )

  it('finds a server again although its monitor has stopped for good', async () => {
    const { proxy, client, ask, server } = await connected()
    await new Promise((resolve) => setTimeout(resolve, MIN_HEARTBEAT_MS))
    let looks = 0
    client.on('serverHeartbeatStarted', () => looks++)
    server.monitor.connection.socket.destroy()
    server.monitor.requestCheck()
    expect(looks).toBe(1)
    await proxy.stop()
    await expect(ask()).rejects.toThrow()
    await proxy.resume()
    await eventually(() => answers(ask))
  })

  it('ends an operation that the driver never ends, and has its connection back', async () => {
    const { client, ask, server } = await connected()
    const [{ socket }] = server.pool.connections.toArray() as [{ socket: Socket }]
    socket.destroy()
    await expect(ask()).rejects.toThrow(MongoNetworkTimeoutError)
    // Until all connections are made anew, another connection of the same pool answers.
    await eventually(async () => {
      const pool = serverOf(client)?.pool
      return pool !== undefined && pool !== server.pool && (await answers(ask))
    })
  })
})
