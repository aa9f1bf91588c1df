import { describe, expect, it } from 'vitest'
import { type McpServer, type McpServerInput, toMcpServers } from './mcp-servers.ts'

const seal = (headers: object, url: string) => JSON.stringify([headers, url])
const createInput = (fields: McpServerInput = {}): McpServerInput => ({ name: 'crm', url: 'https://crm.test/mcp', ...fields })
const before: McpServer[] = [
  { name: 'crm', url: 'https://crm.test/mcp', headerNames: ['authorization'], sealedHeaders: 'sealed', allowedTools: null },
]

it('seals the headers for the address, under lower-case names', () => {
  expect(toMcpServers([createInput({ headers: { Authorization: 'Bearer x' }, allowedTools: ['a', 'b', 'a'] })], [], seal)).toEqual([
    {
      name: 'crm',
      url: 'https://crm.test/mcp',
      headerNames: ['authorization'],
      sealedHeaders: seal({ authorization: 'Bearer x' }, 'https://crm.test/mcp'),
      allowedTools: ['a', 'b'],
    },
  ])
})

for (const [what, fields, sealedHeaders] of [
  ['left out', {}, 'sealed'],
  ['null', { headers: null }, 'sealed'],
  ['none', { headers: {} }, null],
  ['left out at another address', { url: 'https://crm.test/mcp?' }, null],
  ['left out under another name', { name: 'other' }, null],
] as const) {
  it(`${sealedHeaders ? 'preserves the stored' : 'stores no'} headers when they are ${what}`, () => {
    expect(toMcpServers([createInput(fields)], before, seal)[0]!.sealedHeaders).toBe(sealedHeaders)
  })
}

describe('MCP server settings refuse', () => {
  const many = (length: number) => Array.from({ length }, (_, i) => `n${i}`)
  for (const [what, servers, code, param] of [
    ['too many servers', many(6).map((name) => createInput({ name })), 'array_above_max_length', ''],
    ['two with the same name', [createInput(), createInput({ url: 'https://b.test' })], 'already_exists', '[1].name'],
    ['no name', [{ url: 'https://a.test' }], 'missing_required_parameter', '[0].name'],
    ['a long name', [createInput({ name: 'a'.repeat(17) })], 'invalid_request', '[0].name'],
    ['no address', [{ name: 'crm' }], 'missing_required_parameter', '[0].url'],
    ['a long address', [createInput({ url: `https://a.test/${'a'.repeat(2_048)}` })], 'string_above_max_length', '[0].url'],
    ['headers that are a list', [createInput({ headers: ['a'] })], 'invalid_type', '[0].headers'],
    [
      'too many headers',
      [createInput({ headers: Object.fromEntries(many(11).map((name) => [name, 'x'])) })],
      'array_above_max_length',
      '[0].headers',
    ],
    ['a header that is not text', [createInput({ headers: { a: 1 } })], 'invalid_type', '[0].headers.a'],
    ['an empty header', [createInput({ headers: { a: '' } })], 'unsupported_value', '[0].headers.a'],
    ['a duplicate header', [createInput({ headers: { a: 'x', A: 'y' } })], 'already_exists', '[0].headers'],
    ['a header name with a space', [createInput({ headers: { 'a b': 'x' } })], 'invalid_request', '[0].headers'],
    ['the host', [createInput({ headers: { Host: 'other.test' } })], 'unsupported_value', '[0].headers.Host'],
    ['too many tools', [createInput({ allowedTools: many(51) })], 'array_above_max_length', '[0].allowedTools'],
    ['a tool that is not text', [createInput({ allowedTools: [7 as never] })], 'invalid_type', '[0].allowedTools[0]'],
  ] as const) {
    it(what, () => {
      expect(() => toMcpServers(servers, [], seal)).toThrow(expect.objectContaining({ code, param: `input.mcpServers${param}` }))
    })
  }
})
