import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { URL as BASE, KEY, runCases, TIMEOUT_MS, thrown } from './cases.js'

async function connect(key) {
  const client = new Client({ name: 'conformance', version: '1' })
  const headers = { authorization: `Bearer ${key}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${BASE}/mcp`), { requestInit: { headers } }))
  return client
}

const client = await connect(KEY)
const runAgent = (input, options) => client.callTool({ name: 'run_agent_pilot', arguments: { input } }, undefined, options)
const readText = ({ content }) => content.map(({ text }) => text ?? '').join('')

await runCases({
  chat: async (prompt) => ({ text: readText(await runAgent(prompt)) }),
  async stream(prompt) {
    let pieces = 0
    const text = readText(await runAgent(prompt, { onprogress: () => pieces++ }))
    return { text, pieces }
  },
  async structured() {
    const { structuredContent } = await client.callTool({ name: 'search_ports', arguments: { query: 'When was the harbour built?' } })
    return structuredContent
  },
  async errors() {
    return {
      key: await thrown(() => connect('kis_live_wrong')),
      model: await thrown(() => client.callTool({ name: 'no-such-model', arguments: {} })),
      vendor: { message: readText(await runAgent(`refused, asked by ${process.env.KIS_CLIENT}`)) },
    }
  },
  async abort(prompt) {
    const controller = new AbortController()
    return thrown(() => runAgent(prompt, { signal: controller.signal, onprogress: () => controller.abort() }))
  },
  timeout: (prompt) => thrown(() => runAgent(prompt, { timeout: TIMEOUT_MS })),
  lists: async () => ({ tools: (await client.listTools()).tools.map(({ name }) => name) }),
})
