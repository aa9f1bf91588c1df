import { describe, expect, it } from 'vitest'
import schema from '../../../../../../schema/workflow.schema.json'
import { findProblems } from './problems.ts'
import { parseSource, readPath, writePath } from './source.ts'

describe('Workflow source parser', () => {
  it('accepts the same as JSON', () => {
    const value = { a: [1, -2.5e3, 'نص "x" \u0000', null, true, {}], b: { c: [] } }
    expect(parseSource(JSON.stringify(value, null, 2))).toMatchObject({ value })
  })

  it('records the line of each value', () => {
    const parsed = parseSource('{\n  "nodes": [\n    {\n      "id": "a"\n    }\n  ]\n}')
    if ('error' in parsed) throw new Error(parsed.error)
    expect(parsed.lineOf(['nodes'])).toBe(2)
    expect(parsed.lineOf(['nodes', 0])).toBe(3)
    expect(parsed.lineOf(['nodes', 0, 'id'])).toBe(4)
    expect(parsed.lineOf(['nodes', 0, 'model'])).toBe(3)
    expect(parsed.lineOf([])).toBe(1)
  })

  it.each([
    ['', 'empty', 1, 1],
    ['{\n  "a": 1\n  "b": 2\n}', 'comma', 3, 3],
    ['{"a" 1}', 'colon', 1, 6],
    ['{"a": 1,}', 'name', 1, 9],
    ['[1, x]', 'value', 1, 5],
    ['[01]', 'number', 1, 2],
    ['"a\nb"', 'text', 1, 1],
    ['["\\x"]', 'escape', 1, 2],
    ['{} {}', 'more', 1, 4],
    ['{"a": 1,\n"a": 2}', 'repeated', 2, 1],
    ['['.repeat(100), 'deep', 1, 66],
  ])('explains what is wrong with %j', (source, error, line, column) => {
    expect(parseSource(source)).toEqual({ error, line, column })
  })
})

describe('Workflow paths', () => {
  it('are written like those of the service, and parsed back', () => {
    const path = ['nodes', 2, 'messages', 0, 'a b']
    expect(writePath(path)).toBe('nodes[2].messages[0]["a b"]')
    expect(readPath(writePath(path))).toEqual(path)
  })
})

describe('Published schema in the browser', () => {
  it('accepts a valid definition', () => {
    expect(findProblems(schema, { nodes: [{ id: 'a', type: 'template', template: 'x' }], output: null })).toEqual([])
  })

  it('names the path, the keyword and the expected value', () => {
    const problems = findProblems(schema, { nodes: [{ id: '1', type: 'chat', model: 'm', mesages: [] }], max_seconds: 0 })
    expect(problems).toEqual(
      expect.arrayContaining([
        { path: [], keyword: 'required', wanted: 'output' },
        { path: ['nodes', 0], keyword: 'required', wanted: 'messages' },
        { path: ['nodes', 0, 'mesages'], keyword: 'unknown', wanted: 'mesages' },
        { path: ['nodes', 0, 'id'], keyword: 'pattern', wanted: '^[A-Za-z_][A-Za-z0-9_]{0,63}$' },
        { path: ['max_seconds'], keyword: 'minimum', wanted: '1' },
      ]),
    )
  })

  it('names the types of nodes', () => {
    const [problem] = findProblems(schema, { nodes: [{ id: 'a', type: 'loop' }], output: 1 })
    expect(problem).toEqual({
      path: ['nodes', 0, 'type'],
      keyword: 'enum',
      wanted: 'chat, agent, search, transcribe, template, branch, map',
    })
  })

  it('leaves a schema that it cannot read to the service', () => {
    expect(findProblems({ $ref: 'https://example.com/other.json' }, 1)).toEqual([])
  })
})
