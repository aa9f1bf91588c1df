export interface Snippet {
  readonly id: 'curl' | 'node' | 'python' | 'graphql' | 'mcp'
  readonly source: string
}

/** Calls of an agent by `host`, such as `https://knowledge.example.com`. The key is the variable `KIS_API_KEY`. */
export function snippetsFor(
  { id, code }: { readonly id: string; readonly code: string },
  host: string,
  question: string,
): readonly Snippet[] {
  // Quotes of JSON are those of both languages; a shell takes no single quote inside single quotes.
  const questionJson = JSON.stringify(question)
  const shell = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "'\\''")}'`
  const model = JSON.stringify(`agent/${code}`)
  return [
    {
      id: 'curl',
      source: `curl ${host}/v1/agents/${id}/runs \\
  -H "Authorization: Bearer $KIS_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shell({ input: question })}`,
    },
    {
      id: 'node',
      source: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${host}/v1', apiKey: process.env.KIS_API_KEY })
const { choices } = await client.chat.completions.create({
  model: ${model},
  messages: [{ role: 'user', content: ${questionJson} }],
})
console.log(choices[0].message.content)`,
    },
    {
      id: 'python',
      source: `import os

from openai import OpenAI

client = OpenAI(base_url="${host}/v1", api_key=os.environ["KIS_API_KEY"])
completion = client.chat.completions.create(
    model=${model},
    messages=[{"role": "user", "content": ${questionJson}}],
)
print(completion.choices[0].message.content)`,
    },
    {
      id: 'graphql',
      source: `curl ${host}/graphql \\
  -H "Authorization: Bearer $KIS_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shell({
    query: 'mutation Ask($input: RunAgentInput!) { runAgent(input: $input) { outputText cost citations { mark fileName pageStart } } }',
    variables: { input: { agentId: id, input: question } },
  })}`,
    },
    {
      id: 'mcp',
      source: JSON.stringify(
        {
          mcpServers: {
            // Hosts of the protocol put the variable in by this spelling.
            knowledge: { type: 'http', url: `${host}/mcp`, headers: { Authorization: `Bearer \${KIS_API_KEY}` } },
          },
        },
        null,
        2,
      ),
    },
  ]
}
