import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'graphql-ws'

const { KIS_URL = 'http://127.0.0.1:4000', KIS_API_KEY } = process.env
const CURSOR_FILE = 'cursor.txt'
const PING_MS = 10_000
const MAX_RETRY_MS = 30_000

interface Charge {
  readonly cursor: string
  readonly record: { readonly id: string; readonly operation: string; readonly amount: string; readonly at: string }
}

let noPong: NodeJS.Timeout
const request = {
  query: 'subscription ($after: String) { usageRecorded(after: $after) { cursor record { id operation amount at model { id } } } }',
  // "0" is before the first charge.
  variables: { after: existsSync(CURSOR_FILE) ? readFileSync(CURSOR_FILE, 'utf8') : '0' },
}
const client = createClient({
  url: `${KIS_URL.replace(/^http/, 'ws')}/graphql`,
  connectionParams: { authorization: `Bearer ${KIS_API_KEY}` },
  retryAttempts: Number.POSITIVE_INFINITY,
  shouldRetry: () => true, // The default gives up when the service refuses connections, as during a restart.
  retryWait: (retries) => sleep(Math.min(1_000 * 2 ** retries, MAX_RETRY_MS) * (0.5 + Math.random() / 2)),
  keepAlive: PING_MS,
  on: {
    // After a break graphql-ws sends `request` again, now with the cursor of the last event that arrived.
    message(message) {
      if (message.type === 'next' && message.payload.data) request.variables.after = (message.payload.data.usageRecorded as Charge).cursor
    },
    // A network can vanish without closing the socket.
    ping(isReceived) {
      if (!isReceived) noPong = setTimeout(() => client.terminate(), PING_MS)
    },
    pong: () => clearTimeout(noPong),
    closed: () => clearTimeout(noPong),
  },
})

try {
  for await (const { data, errors } of client.iterate<{ usageRecorded: Charge }>(request)) {
    if (!data) throw new Error(errors?.[0]?.message)
    const { cursor, record } = data.usageRecorded
    console.log(JSON.stringify(record)) // Put your own work here. It may be asynchronous.
    writeFileSync(`${CURSOR_FILE}.new`, cursor)
    renameSync(`${CURSOR_FILE}.new`, CURSOR_FILE)
  }
} catch (error) {
  // A repeat does not help: GraphQL errors, or a closed socket with its reason, such as a revoked key.
  const { message, reason = message } = (Array.isArray(error) ? error[0] : error) as { message?: string; reason?: string }
  console.error(reason)
  process.exit(1)
}
