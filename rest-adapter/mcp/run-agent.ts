import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { toErrorCode } from '../../schema/errors.ts'
import { gatewayOperation } from '../../schema/operations.ts'
import { textAt } from '../../subgraphs/common/check.ts'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import { escapeMarks, escapeUntrustedText } from '../../subgraphs/common/untrusted-text.ts'
import type { Call, JsonObject } from '../http/route.ts'
import { EVENT, type RunData, type RunEventData, toRun } from '../routes/agent-run-objects.ts'
import { sourceLine, toResult } from './chunk-marks.ts'
import type { Named } from './tools.ts'

const RUN = gatewayOperation(`subscription McpAgentRun($input: RunAgentInput!) { agentRun(input: $input) { ${EVENT} } }`)
const CANCEL = gatewayOperation('mutation McpCancelRun($id: ID!) { cancelAgentRun(id: $id) { id } }')

/**
 * Runs an agent to its end. If the client cancels the call or leaves, the run is cancelled, because nobody could fetch
 * its answer.
 * @param marksBefore is added to the marks of the run
 * @param onProgress is called with a description of each event, without the answer's text
 * @throws {KisError} the run failed, or the gateway refused it
 */
export async function runAgent(
  call: Call,
  { id }: Named,
  { input }: JsonObject,
  marksBefore: number,
  signal: AbortSignal,
  onProgress: (message: string) => void,
): Promise<CallToolResult> {
  // Marks of the session in the input are escaped: otherwise the run would number its marks after them, and with
  // `marksBefore` these would equal marks of another call.
  const variables = { input: { agentId: id, input: escapeMarks(textAt(input, 'input')) } }
  const events = call.subscribe({ query: RUN, variables }, ({ agentRun }) => agentRun)
  const cancel = () => void events.return?.()
  signal.addEventListener('abort', cancel, { once: true })
  let runId: string | undefined
  let end: RunData | undefined
  try {
    for await (const event of events) {
      runId = event.runId
      if (event.type === 'DONE' && event.run) end = event.run
      const message = describeProgress(event)
      if (message) onProgress(message)
    }
    signal.throwIfAborted()
    if (!end) throw new ServiceUnavailable('The agent')
    return toToolResult(end, marksBefore)
  } finally {
    signal.removeEventListener('abort', cancel)
    if (runId !== undefined && !end) await call.cleanUp(CANCEL, { id: runId })
  }
}

function describeProgress({ type, runId, number, toolCall, search }: RunEventData): string | undefined {
  if (type === 'RUN_STARTED') return `Run ${runId} has begun`
  if (type === 'STEP_STARTED') return `Step ${number}: calling the model`
  if (toolCall) return `Step ${number}: calling ${String(toolCall.name)}`
  if (search) return `Step ${number}: ${search.hits.length} chunks found for "${search.query}"`
  return undefined
}

function toToolResult(run: RunData, marksBefore: number): CallToolResult {
  const { id, output_text, output, citations, error, status, cost_usd } = toRun(run)
  if (error) throw new KisError(toErrorCode(error.code) ?? 'internal', `${error.message} (The run is \`${id}\`.)`)
  if (status !== 'completed') throw new KisError('invalid_request', `The run \`${id}\` was cancelled.`)
  const sources = run.citations.map((citation) => sourceLine(marksBefore + citation.mark, citation))
  const shown = renumber({ output_text, ...(output !== null && { output }) }, marksBefore) as { readonly output_text: string | null }
  const text = [shown.output_text ?? '', ...(sources.length > 0 ? [`Sources:\n${sources.join('\n')}`] : [])].join('\n\n')
  // The structured result also gets its texts escaped: clients pass it to models as well.
  const cited = citations.map(({ mark, text: found, file, ...citation }) => ({
    ...{ mark: marksBefore + mark, ...citation, text: escapeUntrustedText(found) },
    file: { ...file, file_name: escapeUntrustedText(file.file_name) },
  }))
  return toResult(text, { run_id: id, ...shown, citations: cited, cost_usd })
}

/** Adds `marksBefore` to each mark in the texts of a JSON value. The service has checked the marks. */
function renumber(value: unknown, marksBefore: number): unknown {
  const json = JSON.stringify(value).replaceAll(/\[#(\d{1,9})\]/g, (_mark, digits) => `[#${marksBefore + Number(digits)}]`)
  return JSON.parse(json)
}
