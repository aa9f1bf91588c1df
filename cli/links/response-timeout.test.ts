import { readFileSync } from 'node:fs'
import { Kind, type ObjectTypeDefinitionNode, parse } from 'graphql'
import { expect, it } from 'vitest'
import { LONG_FIELDS, responseTimeoutMs } from './response-timeout.ts'

const rootFields = ['billing', 'inference', 'knowledge'].flatMap((name) =>
  parse(readFileSync(new URL(`../../schema/${name}.graphql`, import.meta.url), 'utf8'))
    .definitions.filter(
      (definition): definition is ObjectTypeDefinitionNode =>
        definition.kind === Kind.OBJECT_TYPE_DEFINITION && ['Query', 'Mutation'].includes(definition.name.value),
    )
    .flatMap(({ fields = [] }) => fields.map((field) => field.name.value)),
)

it('allows a long response time only for fields of the contract', () => {
  expect(LONG_FIELDS.filter((field) => !rootFields.includes(field))).toEqual([])
})

for (const [query, ms] of [
  ['{ models { id } }', 5_000],
  ['query Q__inference__1($representations: [_Any!]!) { _entities(representations: $representations) { ... on Model { id } } }', 5_000],
  ['query ($id: ID!) { collection(id: $id) { name } }', 5_000],
  ['\n  mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', 30_000],
  ['mutation Chat__inference__0($input: ChatCompletionInput!) { createChatCompletion(input: $input) { id } }', 900_000],
  ['query ($input: SearchInput!) { searchCollection(input: $input) { cost } }', 900_000],
] as const) {
  it(`allows ${ms} ms for ${query.trim()}`, () => expect(responseTimeoutMs(query)).toBe(ms))
}
