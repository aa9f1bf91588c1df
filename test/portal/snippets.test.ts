import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { snippetsFor } from '../../portal/web/src/pages/agents/snippets.ts'

const QUESTION = `What's "annual" leave? $HOME كم يوماً؟`
const snippets = snippetsFor({ id: 'agt_1', code: 'rules' }, 'https://kis.example', QUESTION)
const sourceOf = (id: string) => snippets.find((each) => each.id === id)!.source

it.each(['curl', 'graphql'])('the arguments of %s pass through a shell unchanged', (id) => {
  const script = `curl() { printf '%s\\0' "$@"; }; ${sourceOf(id)}`
  const output = execFileSync('sh', ['-c', script], { env: { KIS_API_KEY: 'secret' } })
    .toString()
    .split('\0')
  expect(output[0]).toMatch(/^https:\/\/kis\.example\/(v1\/agents\/agt_1\/runs|graphql)$/)
  expect(output).toContain('Authorization: Bearer secret')
  const body = JSON.parse(output[output.indexOf('-d') + 1]!)
  expect(body.input ?? body.variables.input.input).toBe(QUESTION)
})

it('the snippet for MCP is JSON', () => expect(JSON.parse(sourceOf('mcp')).mcpServers.knowledge.url).toBe('https://kis.example/mcp'))

it('no snippet has a key in it', () => {
  for (const { source } of snippets) expect(source).toContain('KIS_API_KEY')
})
