import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises'

/**
 * A vendor of the chat protocol that responds at once and costs next to nothing. A stream has 20 chunks of text, each
 * written in its own event-loop tick. If the last message is `paced`, 5 ms pass between two chunks; if it is `slow`, 1
 * s. Sends its address to the process that started it.
 */

const CHUNKS = 20
const PACES_MS: Readonly<Record<string, number>> = { paced: 5, slow: 1_000 }
const USAGE = { prompt_tokens: 20, completion_tokens: CHUNKS, total_tokens: 20 + CHUNKS }
const HEAD = { id: 'chatcmpl-bench', created: 1_750_000_000, model: 'mock-chat' }

const COMPLETION = JSON.stringify({
  ...HEAD,
  object: 'chat.completion',
  choices: [
    { index: 0, message: { role: 'assistant', content: ' word'.repeat(CHUNKS), refusal: null }, logprobs: null, finish_reason: 'stop' },
  ],
  usage: USAGE,
})

const event = (rest: object) => `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', ...rest })}\n\n`
const delta = (content: object, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta: content, logprobs: null, finish_reason }] })
const FIRST = delta({ role: 'assistant', content: '', refusal: null })
const WORD = delta({ content: ' word' })
const LAST = `${delta({}, 'stop')}${event({ choices: [], usage: USAGE })}data: [DONE]\n\n`

async function stream(response: ServerResponse, paceMs: number | undefined): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(FIRST)
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    await (paceMs ? sleep(paceMs) : nextTick())
    response.write(WORD)
  }
  response.end(LAST)
}

const server = createServer(async (request, response) => {
  if (request.method !== 'POST') {
    // LiteLLM requests the models when it starts.
    response.writeHead(200, { 'content-type': 'application/json' })
    return void response.end('{"object":"list","data":[]}')
  }
  const { stream: isStream, messages } = JSON.parse(await text(request))
  if (isStream) return stream(response, PACES_MS[messages.at(-1).content])
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(COMPLETION)
})
server.listen(0, '127.0.0.1', () => process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`))
process.on('disconnect', () => process.exit())
