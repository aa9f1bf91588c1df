import fc from 'fast-check'
import {
  buildSchema,
  coerceInputValue,
  type FieldNode,
  type GraphQLInputType,
  getArgumentValues,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
  parse,
  typeFromAST,
  validate,
} from 'graphql'
import { describe, expect, it } from 'vitest'
import { coerceInput, compileArguments, compileVariables } from './input-values.ts'

const schema = buildSchema(`
  enum Kind { OLD NEW }
  scalar Any
  input Ask { text: String! = "none" n: Int kind: Kind = NEW tags: [String!] rows: [[Int]] below: Ask more: [Ask!] any: Any must: ID! on: Boolean x: Float }
  input One @oneOf { a: Int b: String }
  type Query { ask(ask: Ask, one: One, n: Int!, ids: [ID!], kind: Kind, any: Any, m: Int! = 4, last: Int = 9): Int }
`)
const operationOf = (query: string) => parse(query).definitions[0] as OperationDefinitionNode

const leaf = fc.oneof(fc.constantFrom(null, undefined, 'text', 'OLD', 'LOST', '', true, 1, -7, 2 ** 31, 1.5, Number.NaN), fc.string())
const mostly = (right: fc.Arbitrary<unknown>) => fc.oneof({ weight: 30, arbitrary: right }, leaf)
const value = fc.letrec((tie) => ({
  any: fc.oneof({ weight: 3, arbitrary: leaf }, fc.array(tie('any'), { maxLength: 3 }), tie('ask')),
  ask: fc.record(
    {
      text: mostly(fc.string()),
      n: mostly(fc.integer()),
      kind: mostly(fc.constantFrom('OLD', 'NEW', null)),
      tags: mostly(fc.array(fc.string())),
      rows: mostly(fc.array(fc.array(fc.nat()))),
      below: mostly(fc.oneof(fc.constant(null), tie('ask'))),
      more: mostly(fc.array(tie('ask'), { maxLength: 2 })),
      any: tie('any'),
      must: mostly(fc.oneof(fc.string(), fc.nat())),
      on: mostly(fc.boolean()),
      x: mostly(fc.double({ noNaN: true, noDefaultInfinity: true })),
    },
    { requiredKeys: ['must'] },
  ),
}))

/** What graphql-js coerces the value to, or that it does not fit. */
function coercedByGraphql(given: unknown, type: GraphQLInputType): unknown {
  const errors: unknown[] = []
  const coerced = coerceInputValue(given, type, (_path, _value, error) => errors.push(error))
  return errors.length > 0 ? 'does not fit' : coerced
}

function coercedByUs(given: unknown, type: GraphQLInputType): unknown {
  try {
    return coerceInput(type, given)
  } catch {
    return 'does not fit'
  }
}

describe('the coercion of input', () => {
  it.each(['Ask', 'Ask!', '[Ask!]!', 'Int', '[[Int]]', 'Kind', 'ID', 'Any'])('gives what graphql-js gives for %s', (name) => {
    const [definition] = operationOf(`query ($a: ${name}) { ask(n: 1) }`).variableDefinitions!
    const type = typeFromAST(schema, definition!.type) as GraphQLInputType
    let fitting = 0
    fc.assert(
      fc.property(fc.oneof(value.any, value.ask), (given) => {
        const theirs = coercedByGraphql(given, type)
        if (theirs !== 'does not fit') fitting++
        expect(coercedByUs(given, type)).toEqual(theirs)
      }),
      { numRuns: 1_000 },
    )
    expect(fitting).toBeGreaterThan(10)
  })

  it('leaves an input of which one field must be given to graphql-js', () => {
    const one = schema.getType('One') as GraphQLInputType
    expect(() => coerceInput(one, { a: 1 })).toThrow()
  })
})

describe('the variables of an operation', () => {
  const query =
    'query ($ask: Ask, $one: One, $n: Int! = 3, $ids: [ID!], $kind: Kind = OLD) { ask(ask: $ask, one: $one, n: $n, ids: $ids, kind: $kind) }'
  const coerce = compileVariables(schema, operationOf(query))

  it('are of a valid operation', () => {
    expect(parse(query).definitions[0]!.kind).toBe(Kind.OPERATION_DEFINITION)
    expect(validate(schema, parse(query))).toEqual([])
  })

  it.each<Record<string, unknown>>([
    {},
    { n: 5, kind: 'NEW', ids: 7, one: { a: 1 }, unknown: 1 },
    { n: null },
    { ask: { must: 1, constructor: 1 } },
    { kind: null, ids: null, ask: null },
    { ask: { must: 1, more: [{ must: 'a' }], extra: 1 }, one: { a: 1, b: 'c' } },
    { ids: [null], kind: 'LOST', n: 'many' },
  ])('are as from graphql-js, with its errors: %j', (inputs) => {
    const theirs = getVariableValues(schema, operationOf(query).variableDefinitions!, inputs)
    expect(coerce(inputs)).toEqual(theirs)
  })

  it('have defaults of their own in each run', () => {
    const own = compileVariables(schema, operationOf('query ($ids: [ID!] = ["a"]) { ask(n: 1, ids: $ids) }'))
    const [first, second] = [own({}), own({})] as { coerced: { ids: string[] } }[]
    first!.coerced.ids.push('b')
    expect(second).toEqual({ coerced: { ids: ['a'] } })
  })
})

describe('the arguments of a field', () => {
  const definition = schema.getQueryType()!.getFields().ask!
  const nodeOf = (text: string) => operationOf(`{ ask(${text}) }`).selectionSet.selections[0] as FieldNode

  it.each<readonly [string, Record<string, unknown>] | readonly [string]>([
    ['n: 1'],
    ['n: $n', { n: 7 }],
    ['n: $n, m: $m, last: $last', { n: 7 }],
    ['n: $n, m: $m, last: $last', { n: 7, m: 1, last: null }],
    ['n: $n', { n: null }],
    ['n: $n', {}],
    ['n: 1, m: null'],
    ['n: 1, m: $m', { m: null }],
    ['n: 1, last: null, kind: OLD, any: "text", ids: "a"'],
    ['n: 1, kind: $kind, ids: $ids', { kind: 'NEW', ids: ['a', 'b'] }],
    ['n: 1, ids: ["a", $id], any: { a: [$id] }', { id: 'b' }],
    ['n: 1, ids: ["a", $id]', {}],
    ['n: 1, ask: { must: $id, more: [{ must: "b", n: $n }], kind: OLD }', { id: 'a', n: 3 }],
    ['n: 1, one: { a: 1 }, ask: null'],
    ['last: 1'],
    ['n: "many"'],
    ['n: 1, kind: LOST'],
  ])('are as from graphql-js, with its errors: %s %j', (text: string, variables: Record<string, unknown> = {}) => {
    const result = (give: () => unknown) => {
      try {
        return give()
      } catch (error) {
        return (error as Error).message
      }
    }
    const argumentsFor = compileArguments(definition, nodeOf(text))
    const theirs = result(() => getArgumentValues(definition, nodeOf(text), variables))
    for (let run = 0; run < 2; run++) expect(result(() => argumentsFor(variables))).toEqual(theirs)
  })

  it('are objects of their own in each run', () => {
    const argumentsFor = compileArguments(definition, nodeOf('n: 1, ids: ["a"], any: { a: 1 }'))
    const first = argumentsFor({}) as { ids: string[]; any: { a: number } }
    first.ids.push('b')
    first.any.a = 2
    expect(argumentsFor({})).toEqual({ n: 1, ids: ['a'], any: { a: 1 }, m: 4, last: 9 })
  })
})
