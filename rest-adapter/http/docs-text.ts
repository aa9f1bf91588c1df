/** From nothing to an answer, as commands to paste one after the other. */
export const WALK_THROUGH: readonly { readonly title: string; readonly command: string }[] = [
  {
    title: 'First call: which models may this key use?',
    command: `export KIS_URL=http://127.0.0.1:4000 KIS_API_KEY=kis_live_…   # the key that the first start printed
curl -s $KIS_URL/v1/models -H "Authorization: Bearer $KIS_API_KEY"`,
  },
  {
    title: 'Make a collection, upload a file, attach it',
    command: `curl -s $KIS_URL/v1/collections -H "Authorization: Bearer $KIS_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"collection_code": "handbook", "collection_name": "Handbook", "embedding_model": "e5-small-ar-en"}'

echo 'Annual leave is 30 days. الإجازة السنوية ثلاثون يوما.' > leave.txt
curl -s $KIS_URL/v1/files -H "Authorization: Bearer $KIS_API_KEY" -H 'Content-Type: application/json' \\
  -d "{\\"file_name\\": \\"leave.txt\\", \\"content_base64\\": \\"$(base64 < leave.txt | tr -d '\\n')\\"}"

curl -s $KIS_URL/v1/collections/col_…/documents -H "Authorization: Bearer $KIS_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"file_id": "file_…"}'`,
  },
  {
    title: 'Search it',
    command: `curl -s $KIS_URL/v1/collections/col_…/search -H "Authorization: Bearer $KIS_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"query": "كم يوما مدة الإجازة؟"}'`,
  },
  {
    title: 'Ask an agent, which searches it and cites what it found',
    command: `curl -s $KIS_URL/v1/agents -H "Authorization: Bearer $KIS_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"code": "handbook", "name": "Handbook", "model": "extractive", "collection_ids": ["col_…"]}'

curl -s $KIS_URL/v1/agents/agt_…/runs -H "Authorization: Bearer $KIS_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"input": "How long is annual leave?"}'`,
  },
  {
    title: 'Chat, with any client of the OpenAI chat protocol',
    command: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: 'http://127.0.0.1:4000/v1', apiKey: process.env.KIS_API_KEY })
const stream = await client.chat.completions.create({
  model: 'extractive',
  messages: [{ role: 'user', content: 'Annual leave is 30 days.\\n\\nHow long is annual leave?' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')`,
  },
]

export const STYLE = `
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --accent: light-dark(#0a58ca, #7ab7ff) }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText }
main { max-width: 60rem; margin: 0 auto; padding: 1rem }
h1 { font-size: 1.6rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line) } h3, h4 { margin: 1.2rem 0 .4rem }
a { color: var(--accent) } nav a { margin-right: .8rem; white-space: nowrap }
code, pre { font: .875em/1.5 ui-monospace, monospace } code { background: var(--soft); padding: .1em .3em; border-radius: .2rem; overflow-wrap: anywhere }
pre { background: var(--soft); padding: .8rem; border-radius: .4rem; overflow-x: auto; unicode-bidi: plaintext }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: 0 .8rem }
summary { cursor: pointer; padding: .5rem 0; display: flex; flex-wrap: wrap; gap: .2rem .6rem; align-items: baseline }
.method { font: 600 .8rem ui-monospace, monospace; min-width: 3.6rem; color: var(--accent) }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line) } td p { margin: 0 }
`
