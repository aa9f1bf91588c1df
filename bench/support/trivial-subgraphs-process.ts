import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { type DocumentNode, execute, parse } from 'graphql'
import { composeSupergraph, SUBGRAPHS, type SubgraphOfBench } from './trivial-subgraphs.ts'

/**
 * The subgraphs of `trivial-subgraphs.ts`, each on a port of its own. A result is computed once and then repeated, so
 * that they take little of the machine. Sends the supergraph to the process that started it.
 */

const documentOf = (number: number) => ({
  id: `doc_${number}`,
  title: `Report ${number} on the harvest`,
  status: 'READY',
  chunkCount: number % 40,
  language: number % 2 ? 'ar' : 'en',
  file: { id: `file_${number}` },
})
const RESOLVERS: Readonly<Record<SubgraphOfBench, object>> = {
  accounts: {
    Query: {
      viewer: () => ({ id: 'a1', name: 'Layla', email: 'layla@example.org', organization: 'org_1', createdAt: '2026-01-01T00:00:00Z' }),
    },
  },
  library: {
    Query: {
      document: () => documentOf(1),
      documents: (_parent: unknown, { first }: { readonly first: number }) => Array.from({ length: first }, (_, i) => documentOf(i + 1)),
    },
  },
  files: {
    Query: { fileCount: () => 50 },
    File: {
      __resolveReference: ({ id }: { readonly id: string }) => ({ id, name: `${id}.pdf`, sizeBytes: 40_000, mediaType: 'application/pdf' }),
    },
  },
}

async function serve(name: SubgraphOfBench): Promise<readonly [SubgraphOfBench, string]> {
  const schema = buildSubgraphSchema({ typeDefs: parse(SUBGRAPHS[name]), resolvers: RESOLVERS[name] as never })
  const documents = new Map<string, DocumentNode>()
  const results = new Map<string, string>()
  const executeBody = async (body: string): Promise<string> => {
    const { query, variables } = JSON.parse(body)
    const document = documents.get(query) ?? parse(query)
    documents.set(query, document)
    return JSON.stringify(await execute({ schema, document, variableValues: variables }))
  }
  const server = createServer(async (request, response) => {
    // Links ping while they wait.
    if (request.method !== 'POST') return void response.end()
    const body = await text(request)
    const known = results.get(body) ?? (await executeBody(body))
    results.set(body, known)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(known) })
    response.end(known)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return [name, `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`]
}

const urls = Object.fromEntries(await Promise.all((Object.keys(SUBGRAPHS) as SubgraphOfBench[]).map(serve)))
process.send!(composeSupergraph(urls as Record<SubgraphOfBench, string>))
process.on('disconnect', () => process.exit())
