/** Composes the subgraphs into `supergraph.graphql`; with `--check` only says whether the file is stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import { composeServices } from '@apollo/composition'
import { type DirectiveNode, type DocumentNode, type FieldDefinitionNode, parse } from 'graphql'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

/** Fields of payloads that are shown once. */
const SECRETS = ['key', 'secret']
/** What says who may ask: nobody without a key, a scope, or services only. */
const AUDIENCES = ['authenticated', 'requiresScopes', 'inaccessible']

/** Fields of the root types that forgot to say who may ask for them. */
function openFields({ definitions }: DocumentNode): readonly string[] {
  const saysWho = ({ directives }: FieldDefinitionNode) => directives?.some(({ name }) => AUDIENCES.includes(name.value))
  return definitions.flatMap((type) => {
    if (type.kind !== 'ObjectTypeDefinition' || !['Query', 'Mutation', 'Subscription'].includes(type.name.value)) return []
    return (type.fields ?? []).filter((field) => !saysWho(field)).map((field) => `${type.name.value}.${field.name.value}`)
  })
}

/** Fields whose failure would take answers with it that nobody can ask for again: other root fields, or a secret. */
function frailFields({ definitions }: DocumentNode): readonly string[] {
  return definitions.flatMap((type) => {
    if (type.kind !== 'ObjectTypeDefinition') return []
    const fields = type.fields ?? []
    const isRoot = ['Query', 'Mutation'].includes(type.name.value)
    const hasSecret = type.name.value.endsWith('Payload') && fields.some(({ name }) => SECRETS.includes(name.value))
    if (!isRoot && !hasSecret) return []
    return fields
      .filter(({ type, directives }) => type.kind === 'NonNullType' && !directives?.some(({ name }) => name.value === 'inaccessible'))
      .filter(({ name }) => isRoot || !SECRETS.includes(name.value))
      .map((field) => `${type.name.value}.${field.name.value}`)
  })
}

/** Lists of objects whose length nobody would know before an operation runs. */
function unsizedLists({ definitions }: DocumentNode): readonly string[] {
  const types = definitions.filter((definition) => definition.kind === 'ObjectTypeDefinition')
  const names = new Set(types.map(({ name }) => name.value))
  const has = (directives: readonly DirectiveNode[] | undefined, names: readonly string[]) =>
    directives?.some(({ name }) => names.includes(name.value))
  return types
    .filter(({ directives }) => !has(directives, ['inaccessible']))
    .flatMap(({ name: type, fields = [] }) =>
      fields
        .filter(({ name, type: fieldType, directives }) => {
          const list = fieldType.kind === 'NonNullType' ? fieldType.type : fieldType
          // The edges of a page are as many as its field was asked for.
          if (list.kind !== 'ListType' || name.value === 'edges' || has(directives, ['inaccessible', 'listSize'])) return false
          const item = list.type.kind === 'NonNullType' ? list.type.type : list.type
          return item.kind === 'NamedType' && names.has(item.name.value)
        })
        .map(({ name }) => `${type.value}.${name.value}`),
    )
}

/** Fields that require another with an argument. Where two arguments meet, Apollo's planner gives the answer to one for both. */
function ambiguousRequirements({ definitions }: DocumentNode): readonly string[] {
  const hasArgument = ({ name, arguments: args = [] }: DirectiveNode) =>
    name.value === 'requires' && args.some(({ value }) => value.kind === 'StringValue' && value.value.includes('('))
  return definitions.flatMap((type) => {
    if (type.kind !== 'ObjectTypeDefinition' && type.kind !== 'ObjectTypeExtension') return []
    return (type.fields ?? [])
      .filter(({ directives }) => directives?.some(hasArgument))
      .map(({ name }) => `${type.name.value}.${name.value}`)
  })
}

const subgraphs = ['billing', 'inference', 'knowledge'].map((name) => ({
  name,
  url: `http://${name}.subgraph`,
  typeDefs: parse(read(`${name}.graphql`)),
}))
const { supergraphSdl = '', errors = [], hints = [] } = composeServices(subgraphs)
const problems = [
  ...errors.map(({ message }) => message),
  // Apollo's planner does not ask for the members that only one subgraph has: their fields would be null.
  ...hints.filter(({ definition }) => definition.code === 'INCONSISTENT_UNION_MEMBER').map(({ message }) => message),
  ...subgraphs.flatMap(({ typeDefs }) => ambiguousRequirements(typeDefs)).map((field) => `${field} requires a field with an argument`),
  ...subgraphs.flatMap(({ typeDefs }) => openFields(typeDefs)).map((field) => `${field} has none of @${AUDIENCES.join(', @')}`),
  ...subgraphs.flatMap(({ typeDefs }) => frailFields(typeDefs)).map((field) => `${field} has \`!\`: write \`@semanticNonNull\` instead`),
  ...subgraphs.flatMap(({ typeDefs }) => unsizedLists(typeDefs)).map((field) => `${field} is a list of objects without @listSize`),
]
if (problems.length > 0) {
  for (const problem of problems) console.error(problem)
  process.exit(1)
}
if (!process.argv.includes('--check')) {
  writeFileSync(new URL('supergraph.graphql', import.meta.url), supergraphSdl)
} else if (read('supergraph.graphql') !== supergraphSdl) {
  console.error('schema/supergraph.graphql is stale: run `npm run compose`')
  process.exit(1)
}
