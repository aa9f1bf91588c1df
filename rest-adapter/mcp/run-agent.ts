import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { ExecutionResult } from 'graphql'
import { textAt } from '../../subgraphs/common/check.ts'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import { type Call, inRestNames, type JsonObject } from '../route.ts'
import { resultOf, sourceLine } from './passages.ts'
import type { Named } from './tools.ts'

const RUN = `subscription McpAgentRun($input: RunAgentInput!) { agentRun(input: $input) { type runId number toolCall { name }
  search { query hits { chunkId } } run { id status outputText output cost error { code message }
    citations { mark chunkId text fileName pageStart pageEnd charStart charEnd collection { id } document { id } file { id } } } } }`
const CANCEL = 'mutation McpCancelRun($id: ID!) { cancelAgentRun(id: $id) { id } }'

interface RunEvent {
  readonly type: string
  readonly runId: string
  readonly number: number | null
  readonly toolCall: { readonly name: string } | null
  readonly search: { readonly query: string; readonly hits: readonly unknown[] } | null
  readonly run: Run | null
}

interface Run {
  readonly id: string
  readonly status: string
  readonly outputText: string | null
  readonly output: unknown
  readonly cost: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly citations: readonly Citation[]
}

interface Citation {
  readonly mark: number
  readonly chunkId: string
  readonly text: string
  readonly fileName: string
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly charStart: number
  readonly charEnd: number
  readonly collection: { readonly id: string } | null
  readonly document: { readonly id: string } | null
  readonly file: { readonly id: string } | null
}

/**
 * Runs an agent to its end. Nobody can fetch the answer of a call that is gone, so that whoever cancels it or leaves cancels the run.
 * @param onProgress what happens, in words; not the answer's text.
 * @throws {KisError}
 */
export async function runAgent(
  call: Call,
  { id }: Named,
  { input }: JsonObject,
  signal: AbortSignal,
  onProgress: (message: string) => void,
): Promise<CallToolResult> {
  const variables = { input: { agentId: id, input: textAt(input, 'input') } }
  const events = call.subscribe({ query: RUN, variables })
  const leave = () => void events.return?.()
  signal.addEventListener('abort', leave, { once: true })
  let runId: string | undefined
  let end: Run | undefined
  try {
    for await (const result of events) {
      const event = eventOf(result)
      runId = event.runId
      if (event.type === 'DONE' && event.run) end = event.run
      const message = progressOf(event)
      if (message) onProgress(message)
    }
    signal.throwIfAborted()
    if (!end) throw new ServiceUnavailable('The agent')
    return answerOf(end)
  } finally {
    signal.removeEventListener('abort', leave)
    if (runId !== undefined && !end) await call.cleanUp(CANCEL, { id: runId })
  }
}

function eventOf({ data, errors }: ExecutionResult): RunEvent {
  if (errors?.length) throw inRestNames(KisError.fromGraphQL(errors[0]!))
  if (!data) throw new ServiceUnavailable('A part of the service')
  return (data as unknown as { readonly agentRun: RunEvent }).agentRun
}

function progressOf({ type, runId, number, toolCall, search }: RunEvent): string | undefined {
  if (type === 'RUN_STARTED') return `Run ${runId} has begun`
  if (type === 'STEP_STARTED') return `Step ${number}: asking the model`
  if (toolCall) return `Step ${number}: calling ${toolCall.name}`
  if (search) return `Step ${number}: ${search.hits.length} passages found for "${search.query}"`
  return undefined
}

function answerOf({ id, status, outputText, output, cost, error, citations }: Run): CallToolResult {
  if (error) throw new KisError('engine_error', `${error.message} (${error.code.toLowerCase()}; the run is \`${id}\`.)`)
  if (status !== 'COMPLETED') throw new KisError('engine_error', `The run \`${id}\` was cancelled.`)
  const sources = citations.map((citation) => sourceLine(citation.mark, citation))
  const text = [outputText ?? '', ...(sources.length > 0 ? [`Sources:\n${sources.join('\n')}`] : [])].join('\n\n')
  return resultOf(text, {
    run_id: id,
    output_text: outputText,
    ...(output !== null && { output }),
    citations: citations.map((citation) => ({
      mark: citation.mark,
      chunk_id: citation.chunkId,
      text: citation.text,
      page_start: citation.pageStart,
      page_end: citation.pageEnd,
      char_start: citation.charStart,
      char_end: citation.charEnd,
      collection_id: citation.collection?.id ?? null,
      document_id: citation.document?.id ?? null,
      file: { id: citation.file?.id ?? null, file_name: citation.fileName },
    })),
    cost_usd: cost,
  })
}
