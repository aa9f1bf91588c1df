import { describe, expect, it } from 'vitest'
import { type Draft, draftOf, inputOf, NEW_AGENT, newServer, problemsOf } from './draft.ts'
import { EXAMPLE_SCHEMA, readSchema } from './schema.ts'

const RIGHT: Draft = { ...NEW_AGENT, name: 'Rules', code: 'rules', model: 'extractive' }
const server = (fields: object) => ({ ...newServer(), name: 'crm', url: 'https://crm.example/mcp', ...fields })

describe('Agent form', () => {
  it('names each wrong field', () => {
    expect(problemsOf(RIGHT)).toEqual({})
    expect(problemsOf(NEW_AGENT)).toEqual({ name: 'missing', code: 'code', model: 'missing' })
    const wrong = { temperature: '3', topP: '1.1', maxOutputTokens: '0', maxSteps: '13', maxCost: '0' }
    expect(problemsOf({ ...RIGHT, ...wrong })).toEqual({
      temperature: 'temperature',
      topP: 'topP',
      maxOutputTokens: 'notWhole',
      maxSteps: 'steps',
      maxCost: 'cost',
    })
    expect(problemsOf({ ...RIGHT, hasSchema: true })).toEqual({ responseSchema: 'schema' })
  })

  it('names the server of a wrong field', () => {
    const servers = [server({}), server({ url: 'ftp://x' }), server({ name: 'a b', headers: 'no header' })]
    expect(problemsOf({ ...RIGHT, servers })).toEqual({
      'mcpServers[1].name': 'serverTwice',
      'mcpServers[1].url': 'url',
      'mcpServers[2].name': 'serverName',
      'mcpServers[2].headers': 'headers',
    })
  })

  it('accepts Arabic-Indic digits', () => {
    const typed = { ...RIGHT, temperature: '٠٫٢', maxSteps: '١٢', maxCost: '٢٫٥' }
    expect(problemsOf(typed)).toEqual({})
    expect(inputOf(typed)).toMatchObject({ temperature: 0.2, maxSteps: 12, maxCost: '2.5' })
  })

  it('sends the headers of a server only if they were changed', () => {
    const { mcpServers } = inputOf({
      ...RIGHT,
      servers: [
        server({ kept: ['authorization'] }),
        server({ name: 'b', headers: 'Authorization: Bearer x:y\n\nx-team: 7' }),
        server({ name: 'c', kept: ['authorization'], isWithoutHeaders: true, tools: 'find\n find_all ' }),
      ],
    })
    expect(mcpServers.map(({ headers }) => headers)).toEqual([undefined, { authorization: 'Bearer x:y', 'x-team': '7' }, {}])
    expect(mcpServers.map(({ allowedTools }) => allowedTools)).toEqual([undefined, undefined, ['find', 'find_all']])
  })

  it('round-trips an agent', () => {
    const agent = {
      id: 'agt_1',
      version: 2,
      code: 'rules',
      name: 'Rules',
      instructions: 'Be short.',
      temperature: null,
      topP: 0.5,
      maxOutputTokens: null,
      responseSchema: { type: 'object' },
      maxSteps: 3,
      maxCost: '2',
      model: { id: 'extractive' },
      collections: [{ id: 'col_1' }, null],
      mcpServers: [{ name: 'crm', url: 'https://crm.example', headerNames: ['authorization'], allowedTools: null }],
    }
    expect(inputOf(draftOf(agent))).toEqual({
      code: 'rules',
      name: 'Rules',
      model: 'extractive',
      instructions: 'Be short.',
      collectionIds: ['col_1'],
      mcpServers: [{ name: 'crm', url: 'https://crm.example' }],
      responseSchema: { type: 'object' },
      temperature: null,
      topP: 0.5,
      maxOutputTokens: null,
      maxSteps: 3,
      maxCost: '2',
    })
  })
})

describe('Response schema field', () => {
  it('accepts a valid schema', () => expect(readSchema(EXAMPLE_SCHEMA)).toHaveProperty('schema.type', 'object'))

  it.each([
    ['', { kind: 'empty' }],
    ['[]', { kind: 'notObject' }],
    ['{"type": "text"}', { kind: 'type', path: '/type' }],
    ['{"properties": {"a": {"type": ["string", "date"]}}}', { kind: 'type', path: '/properties/a/type' }],
    ['{"required": "a"}', { kind: 'required', path: '/required' }],
    ['{"items": {"enum": "a"}}', { kind: 'enum', path: '/items/enum' }],
    ['{"anyOf": [true, {"$ref": "https://x.example/schema"}]}', { kind: 'reference', path: '/anyOf/1/$ref' }],
    ['{"properties": {"a": 1}}', { kind: 'part', path: '/properties/a' }],
    [`{"title": "${'x'.repeat(32_768)}"}`, { kind: 'long' }],
    [`${'{"not":'.repeat(200)}{}${'}'.repeat(200)}`, { kind: 'deep' }],
  ])('explains what is wrong with %.40s', (typed, problem) => expect(readSchema(typed)).toEqual({ problem }))

  it('names the line of a JSON syntax error', () => {
    expect(readSchema('{\n"type": "object",\n}')).toEqual({ problem: { kind: 'notJsonAt', line: 3 } })
    expect(readSchema('type')).toHaveProperty('problem.kind', 'notJson')
  })
})
