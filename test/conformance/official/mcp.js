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
const search = () => client.callTool({ name: 'search_ports', arguments: { query: 'When was the harbour built?' } })
const readText = ({ content }) => content.map(({ text }) => text ?? '').join('')

// The client now knows the schemas of the tools.
const { tools } = await client.listTools()

await runCases({
  chat: async (prompt) => ({ text: readText(await runAgent(prompt)) }),
  async stream(prompt) {
    let pieces = 0
    const text = readText(await runAgent(prompt, { onprogress: () => pieces++ }))
    return { text, pieces }
  },
  tools: async () => ({ text: readText(await search()) }),
  /** The client has checked it by the tool's schema. */
  structured: async () => (await search()).structuredContent,
  async errors() {
    return {
      key: await thrown(() => connect('kis_live_wrong')),
      model: await thrown(() => client.callTool({ name: 'no-such-model', arguments: {} })),
      vendor: { message: readText(await runAgent(`refused, asked by ${process.env.KIS_CLIENT}`)) },
    }
  },
  abort(prompt) {
    const controller = new AbortController()
    // No step of the run says that the model writes.
    const onprogress = ({ message }) => message.includes('calling the model') && setTimeout(() => controller.abort(), TIMEOUT_MS / 2)
    return thrown(() => runAgent(prompt, { signal: controller.signal, onprogress }))
  },
  timeout: (prompt) => thrown(() => runAgent(prompt, { timeout: TIMEOUT_MS })),
  lists: async () => ({ tools: tools.map(({ name }) => name) }),
})
