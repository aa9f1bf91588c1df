import { addTypenameSelectionDocumentTransform, preset } from '@graphql-codegen/client-preset'
import { codegen } from '@graphql-codegen/core'
import { type GraphQLSchema, parse, printSchema } from 'graphql'

/** Operations of a frontend, as its developers write them. The names are those that Relay wants of a file `Home.ts`. */
export const OPERATIONS: readonly string[] = [
  `query HomeQuery($first: Int!) {
    organization { name wallet { available } quota { vectors { used limit } } }
    collections(first: $first) { edges { node { id ...Home_collection } } pageInfo { hasNextPage endCursor } }
  }`,
  'fragment Home_collection on Collection { name chunkCount embeddingModel { id } }',
  `mutation HomeMutation($input: CreateApiKeyInput!, $fileId: ID!) {
    createApiKey(input: $input) { key apiKey { id name scopes } }
    deleteFile(id: $fileId) { id }
  }`,
  'subscription HomeSubscription($input: ChatCompletionInput!) { chatCompletion(input: $input) { textDelta } }',
]

export const SCALARS: Readonly<Record<string, string>> = { USD: 'string', DateTime: 'string', Cursor: 'string', JSON: 'unknown' }

/** What graphql-codegen's client preset writes, by file name, with the manifest of persisted documents. */
export async function generateClient(schema: GraphQLSchema): Promise<ReadonlyMap<string, string>> {
  const sections = await preset.buildGeneratesSection({
    baseOutputDir: 'gql/',
    schema: parse(printSchema(schema)),
    schemaAst: schema,
    documents: OPERATIONS.map((rawSDL, index) => ({ location: `operation-${index}.ts`, rawSDL, document: parse(rawSDL) })),
    // Apollo's cache knows objects and fragments by it.
    documentTransforms: [{ name: 'typename', transformObject: addTypenameSelectionDocumentTransform, config: {} }],
    config: { useTypeImports: true, dedupeOperationSuffix: true, scalars: SCALARS },
    presetConfig: { persistedDocuments: true },
    plugins: [],
    pluginMap: {},
  })
  // The manifest waits for the documents.
  return new Map(await Promise.all(sections.map(async (section) => [section.filename, await codegen(section)] as const)))
}
