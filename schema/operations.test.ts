import { globSync, readFileSync } from 'node:fs'
import { Supergraph } from '@apollo/federation-internals'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { type GraphQLSchema, parse, validate } from 'graphql'
import { expect, it, vi } from 'vitest'

type Part = 'gateway' | 'billing' | 'inference' | 'knowledge'
const { sent, collect } = vi.hoisted(() => {
  const sent: { part: Part; text: string }[] = []
  const collect = (part: Part) => (text: string) => {
    sent.push({ part, text })
    return text
  }
  return { sent, collect }
})
vi.mock('./operations.ts', () => ({
  gatewayOperation: collect('gateway'),
  billingOperation: collect('billing'),
  inferenceOperation: collect('inference'),
  knowledgeOperation: collect('knowledge'),
}))

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')
const subgraph = (name: string) => buildSubgraphSchema({ typeDefs: parse(read(`${name}.graphql`)) })
const SCHEMAS: Readonly<Record<Part, GraphQLSchema>> = {
  gateway: Supergraph.build(read('supergraph.graphql'), { supportedFeatures: null }).apiSchema().toGraphQLJSSchema(),
  billing: subgraph('billing'),
  inference: subgraph('inference'),
  knowledge: subgraph('knowledge'),
}

// The compiler assigns the type `unknown` to a field that the schema does not have, and reports no error.
it('every operation between subgraphs is valid', async () => {
  const root = new URL('..', import.meta.url).pathname
  const files = globSync(['rest-adapter/**/*.ts', 'subgraphs/**/*-link.ts', 'cli/links/authenticate-by.ts'], { cwd: root })
  for (const file of files.filter((name) => !name.endsWith('.test.ts'))) await import(`${root}${file}`)
  const problems = sent.flatMap(({ part, text }) =>
    validate(SCHEMAS[part], parse(text)).map(({ message }) => `${part}: ${message} ${text}`),
  )
  expect(problems).toEqual([])
  expect(sent.length).toBeGreaterThan(90)
})
