import { readFileSync } from 'node:fs'
import { parse } from 'graphql'
import { expect, it } from 'vitest'
import { resolvers as billing } from '../../subgraphs/billing/resolvers/index.ts'
import { resolvers as inference } from '../../subgraphs/inference/resolvers/index.ts'
import { resolvers as knowledge } from '../../subgraphs/knowledge/resolvers/index.ts'

for (const [name, resolvers] of Object.entries({ billing, inference, knowledge })) {
  it(`has a resolver for every query, mutation and subscription of ${name}`, () => {
    const sdl = parse(readFileSync(new URL(`../../schema/${name}.graphql`, import.meta.url), 'utf8'))
    for (const type of ['Query', 'Mutation', 'Subscription'] as const) {
      const fields = sdl.definitions.flatMap((node) =>
        (node.kind === 'ObjectTypeDefinition' || node.kind === 'ObjectTypeExtension') && node.name.value === type
          ? (node.fields ?? [])
          : [],
      )
      expect(Object.keys(resolvers[type] ?? {}).toSorted()).toEqual(fields.map((field) => field.name.value).toSorted())
    }
  })
}
