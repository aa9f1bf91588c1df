import { buffer } from 'node:stream/consumers'
import { knowledgeOperation, type OperationText } from '../../../schema/operations.ts'
import { byteRequest } from '../../common/bytes/byte-response.ts'
import { KisError, NotFound } from '../../common/errors.ts'
import { type Link, request } from '../../common/link/link.ts'
import { sizeTexts } from '../../common/sizes.ts'
import { parseUsd } from '../../common/usd.ts'
import type { BillingContext } from '../ports/billing.ts'
import type { FoundChunk, Knowledge } from '../ports/knowledge.ts'

const DESCRIBE =
  knowledgeOperation(`query DescribeCollection($id: ID!) { collection(id: $id) { id code name description chunkCount contents {
  documentCount examinedCount languages { language documentCount } titles { title fileName } headings oldestAt newestAt } } }`)
const DOWNLOAD = knowledgeOperation(`query DocumentDownload($id: ID!) {
  fileDownload(id: $id, isPartOfCall: true) { path file { sizeBytes } } }`)
const SEARCH = knowledgeOperation(`query SearchForRun($input: SearchInput!, $runHoldId: ID, $step: String) {
  searchCollection(input: $input, runHoldId: $runHoldId, step: $step) {
    cost
    hits { score chunk { id text headingPath pageStart pageEnd charStart charEnd document { id name } file { id } } }
  }
}`)

/** Knowledge behind a link. */
export function knowledgeOver(link: Link): Knowledge {
  const send = <Data, Variables>(
    query: OperationText<Data, Variables>,
    variables: Variables & Readonly<Record<string, unknown>>,
    context: BillingContext,
  ) => request(link, { query, variables }, context)

  return {
    async describe(collectionIds, context) {
      const found = await Promise.all(collectionIds.map((id) => send(DESCRIBE, { id }, context)))
      return found.flatMap(({ collection }) => collection ?? [])
    },

    async search({ collectionId, query, limit, filter, step }, context) {
      const variables = {
        input: { collectionId, query, limit, filter },
        runHoldId: context.runHoldId,
        step: step && `${step.runId}/${step.path}`,
      }
      const { searchCollection } = await send(SEARCH, variables, context)
      const chunks = searchCollection.hits.map(({ score, chunk: { id, document, file, ...position } }): FoundChunk => {
        return { chunkId: id, collectionId, documentId: document.id, fileId: file.id, fileName: document.name, ...position, score }
      })
      return { passages: chunks, cost: parseUsd(searchCollection.cost) }
    },

    async readFile(id, param, mostBytes, context) {
      const { fileDownload } = await send(DOWNLOAD, { id }, context).catch((error) => {
        throw error instanceof KisError && error.code === 'not_found' ? new NotFound('file', id, param) : error
      })
      const { sizeBytes } = fileDownload.file
      if (sizeBytes > mostBytes) {
        const [has, most] = sizeTexts(sizeBytes, mostBytes)
        throw new KisError('payload_too_large', `The file \`${id}\` has ${has}; at most ${most} are read.`, { param })
      }
      const { body } = await link.openBytes(byteRequest(fileDownload.path), context)
      return buffer(body)
    },
  }
}
