import { ERRORS } from '../../schema/errors.ts'

/**
 * Returns the commands that lead from nothing to a first answer of a service at `origin`, to paste one after the other.
 */
function walkThrough(origin: string): readonly { readonly title: string; readonly language: string; readonly code: string }[] {
  const json = `-H "Authorization: Bearer $KIS_API_KEY" -H 'Content-Type: application/json'`
  return [
    {
      title: 'First call: which models may this key use?',
      language: 'sh',
      code: `export KIS_URL=${origin} KIS_API_KEY=kis_live_…   # the key that the first start printed
curl -s $KIS_URL/v1/models -H "Authorization: Bearer $KIS_API_KEY"`,
    },
    {
      title: 'Create a collection, upload a file, attach it',
      language: 'sh',
      code: `curl -s $KIS_URL/v1/collections ${json} \\
  -d '{"collection_code": "handbook", "collection_name": "Handbook", "embedding_model": "e5-small-ar-en"}'

echo 'Annual leave is 30 days. الإجازة السنوية ثلاثون يوما.' > leave.txt
curl -s $KIS_URL/v1/files ${json} \\
  -d "{\\"file_name\\": \\"leave.txt\\", \\"content_base64\\": \\"$(base64 < leave.txt | tr -d '\\n')\\"}"

curl -s $KIS_URL/v1/collections/col_…/documents ${json} \\
  -d '{"file_id": "file_…"}'`,
    },
    {
      title: 'Search it',
      language: 'sh',
      code: `curl -s $KIS_URL/v1/collections/col_…/search ${json} \\
  -d '{"query": "كم يوما مدة الإجازة؟"}'`,
    },
    {
      title: 'Ask an agent, which searches it and cites what it found',
      language: 'sh',
      code: `curl -s $KIS_URL/v1/agents ${json} \\
  -d '{"code": "handbook", "name": "Handbook", "model": "extractive", "collection_ids": ["col_…"]}'

curl -s $KIS_URL/v1/agents/agt_…/runs ${json} \\
  -d '{"input": "How long is annual leave?"}'`,
    },
    {
      title: 'Chat, with any client of the OpenAI chat protocol',
      language: 'js',
      code: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: process.env.KIS_API_KEY })
const stream = await client.chat.completions.create({
  model: 'extractive',
  messages: [{ role: 'user', content: 'Annual leave is 30 days.\\n\\nHow long is annual leave?' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')`,
    },
  ]
}

/** Returns the description of the API with its first steps and its errors, in Markdown. */
export function introduce(description: string, origin: string): string {
  const steps = walkThrough(origin).map(({ title, language, code }) => `### ${title}\n\n\`\`\`${language}\n${code}\n\`\`\``)
  const errors = Object.entries(ERRORS).map(
    ([code, { status, type, retry }]) => `| \`${code}\` | ${status} | ${type} | ${retry ? 'yes' : 'no'} |`,
  )
  return [
    description,
    '## First steps',
    ...steps,
    '## Errors',
    'Every error has the body `{"error": {"message", "type", "param", "code"}}`.',
    ['| Code | Status | Type | Retry |', '|---|---|---|---|', ...errors].join('\n'),
  ].join('\n\n')
}
