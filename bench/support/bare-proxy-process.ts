import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Pool } from 'undici'

/**
 * The least work of a proxy in Node: it reads the request's JSON, forwards it, and forwards each piece of the response
 * as it comes. No keys, no money, no checks. Expects the engine's address as its argument, and sends its own to the
 * process that started it.
 */
const engine = new URL(process.argv[2]!)
const pool = new Pool(engine.origin, { connections: 64 })

const server = createServer(async (request, response) => {
  const body = JSON.stringify(JSON.parse(await text(request)))
  const headers = { 'content-type': 'application/json' }
  const reply = await pool.request({ method: 'POST', path: `${engine.pathname}/chat/completions`, headers, body })
  response.writeHead(reply.statusCode, { 'content-type': String(reply.headers['content-type']) })
  for await (const piece of reply.body) response.write(piece)
  response.end()
})
server.listen(0, '127.0.0.1', () => process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`))
process.on('disconnect', () => process.exit())
