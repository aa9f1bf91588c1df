import type { Selected } from '../../schema/operations.ts'
import type { AgentRun, AgentRunEvent, AgentRunStep, AgentRunUsage } from '../contract/agents.ts'
import { lowerCase, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

const USAGE = 'usage { promptTokens cachedPromptTokens cacheWritePromptTokens completionTokens totalTokens }'
const STEP = `kind number model { id } collection { id } query hitCount ${USAGE} cost`

/**
 * The selected fields of a run and of an event. None leads to another subgraph, so the gateway forwards streams
 * unchanged.
 */
export const RUN = `id agentId agentVersion status messages outputText output citations { mark chunkId text fileName collection { id } document { id }
  file { id } pageStart pageEnd charStart charEnd } steps { ${STEP} } ${USAGE} cost error { code message } threadId startedAt endedAt`
export const EVENT = `type runId cursor at number textDelta toolCall { id name arguments }
  search { collection { id } query hits { chunkId fileName pageStart score } } usage { ${STEP} } run { ${RUN} }`

type UsageData = RunData['usage']
type StepData = RunData['steps'][number]
type CitationData = RunData['citations'][number]
export type RunData = Selected<'AgentRun', typeof RUN>

export type RunEventData = Selected<'AgentRunEvent', typeof EVENT>

export function toRun(data: RunData): AgentRun {
  return {
    id: data.id,
    object: 'agent.run',
    created_at: unixSeconds(data.startedAt),
    ended_at: unixSecondsOrNull(data.endedAt),
    agent_id: data.agentId,
    agent_version: data.agentVersion,
    status: lowerCase(data.status),
    messages: data.messages as AgentRun['messages'],
    output_text: data.outputText,
    output: data.output,
    citations: data.citations.map(toCitation),
    steps: data.steps.map(toStep),
    usage: toUsage(data.usage),
    cost_usd: data.cost,
    error: data.error && { code: lowerCase(data.error.code), message: data.error.message },
    thread_id: data.threadId,
  }
}

/** Converts an event, with the fields of its type. */
export function toEvent({ type, runId, cursor, at, number, textDelta, toolCall, search, usage, run }: RunEventData): AgentRunEvent {
  return {
    type: lowerCase(type),
    run_id: runId,
    cursor,
    created_at: unixSeconds(at),
    ...(number !== null && { step: number }),
    ...(textDelta !== null && { delta: textDelta }),
    ...(toolCall && { tool_call: toolCall }),
    ...(search && { search: toSearch(search) }),
    ...(usage && { usage: toStep(usage) }),
    ...(run && { run: toRun(run) }),
  }
}

function toCitation(data: CitationData) {
  return {
    mark: data.mark,
    chunk_id: data.chunkId,
    text: data.text,
    page_start: data.pageStart,
    page_end: data.pageEnd,
    char_start: data.charStart,
    char_end: data.charEnd,
    collection_id: data.collection?.id ?? null,
    document_id: data.document?.id ?? null,
    file: { id: data.file?.id ?? null, file_name: data.fileName },
  }
}

function toStep({ kind, number, model, collection, query, hitCount, usage, cost }: StepData): AgentRunStep {
  return {
    kind: lowerCase(kind),
    step: number,
    model: model?.id ?? null,
    collection_id: collection?.id ?? null,
    query,
    hit_count: hitCount,
    usage: usage && toUsage(usage),
    cost_usd: cost,
  }
}

function toSearch({ collection, query, hits }: NonNullable<RunEventData['search']>) {
  return {
    collection_id: collection?.id ?? null,
    query,
    hits: hits.map(({ chunkId, fileName, pageStart, score }) => ({
      chunk_id: chunkId,
      file_name: fileName,
      page_start: pageStart,
      score,
    })),
  }
}

function toUsage({ promptTokens, cachedPromptTokens, cacheWritePromptTokens, completionTokens, totalTokens }: UsageData): AgentRunUsage {
  return {
    input_tokens: promptTokens,
    cached_input_tokens: cachedPromptTokens,
    cache_write_tokens: cacheWritePromptTokens,
    output_tokens: completionTokens,
    total_tokens: totalTokens,
  }
}
