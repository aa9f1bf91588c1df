import { isAbsent, refuse } from '../../../common/check.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { type ChatRequest, checkChatRequest, requestedOutputTokens } from '../chat/chat-request.ts'
import { marksIn } from './found-chunks.ts'
import { schemaAt } from './response-schema.ts'
import type { RunOutcome } from './run.ts'

/** A model name with this prefix and an agent's code stands for the agent. */
const PREFIX = 'agent/'

/** Fields that every call of the agent's model gets. They override the agent's own. */
const SAMPLING = [
  ...['temperature', 'top_p', 'stop', 'seed', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'reasoning_effort'],
  ...['reasoning_effort_if_supported', 'verbosity', 'user', 'safety_identifier', 'prompt_cache_key', 'service_tier', 'cache_control'],
]
/** Fields that other code handles, or that request the default behavior. */
const READ = [
  ...['model', 'messages', 'stream', 'stream_options', 'n', 'max_tokens', 'max_completion_tokens', 'response_format', 'modalities'],
  ...['tools', 'functions'],
]

/** A chat request to an agent. */
export interface AgentChat {
  /** `agent/` and the agent's code. */
  readonly model: string
  readonly messages: readonly ProtocolObject[]
  readonly sampling: ProtocolObject
  /** The caller's schema for the reply. Null: the agent's schema applies. */
  readonly responseSchema: ProtocolObject | null
  /** Fields that do not apply to agents and are ignored. */
  readonly unhonored: readonly string[]
}

export function isAgentModel(request: unknown): boolean {
  const model = (request as { readonly model?: unknown } | null)?.model
  return typeof model === 'string' && model.startsWith(PREFIX)
}

/**
 * @throws {KisError} `invalid_request` and its family: a field is wrong, or does not apply to an agent; has the path
 */
export function readAgentChat(value: unknown, isStream: boolean): AgentChat {
  const request = checkChatRequest(value, isStream)
  for (const field of ['tools', 'functions'])
    if (Array.isArray(request[field]) && (request[field] as unknown[]).length > 0)
      refuse('unsupported_value', field, `An agent only calls its own tools. Leave '${field}' out.`)
  if ((request.n ?? 1) !== 1) refuse('unsupported_value', 'n', "An agent returns one answer: 'n' must be 1.")
  const maxTokens = requestedOutputTokens(request)
  const provided = SAMPLING.filter((field) => !isAbsent(request[field])).map((field) => [field, request[field]])
  return {
    model: request.model,
    messages: request.messages,
    sampling: { ...Object.fromEntries(provided), ...(maxTokens !== null && { max_completion_tokens: maxTokens }) },
    responseSchema: readSchema(request),
    unhonored: Object.keys(request).filter((field) => {
      const value = request[field]
      return !isAbsent(value) && value !== false && !SAMPLING.includes(field) && !READ.includes(field)
    }),
  }
}

/** The path of the schema in a request of the chat protocol. */
export const SCHEMA_PARAM = 'response_format.json_schema.schema'

function readSchema({ response_format: format }: ChatRequest): ProtocolObject | null {
  const { type, json_schema: named } = (format ?? {}) as { type?: string; json_schema?: { schema?: ProtocolObject | null } }
  if (type === 'json_schema' && named?.schema) return schemaAt(named.schema, SCHEMA_PARAM)
  return type === 'json_object' || type === 'json_schema' ? { type: 'object' } : null
}

/** How a reply ended, in the protocol's words. */
export function toFinishReason({ finishReason }: RunOutcome): string {
  return finishReason === 'length' || finishReason === 'content_filter' ? finishReason : 'stop'
}

/**
 * Returns one annotation for each mark, in the form of the protocol's `url_citation` (the sources are files, which have
 * no address). `offset` is where the reply starts in the text sent so far.
 */
export function toAnnotations({ text, citations }: RunOutcome, offset = 0): readonly ProtocolObject[] {
  const byMark = new Map(citations.map((citation) => [citation.mark, citation]))
  return marksIn(text).flatMap(({ mark, start, end }) => {
    const cited = byMark.get(mark)
    if (!cited) return []
    const { fileId, fileName, chunkId, documentId, collectionId, pageStart, pageEnd, charStart, charEnd } = cited
    return {
      type: 'file_citation',
      file_citation: {
        ...{ start_index: offset + start, end_index: offset + end, file_id: fileId, filename: fileName },
        ...{ chunk_id: chunkId, document_id: documentId, collection_id: collectionId, page_start: pageStart, page_end: pageEnd },
        ...{ char_start: charStart, char_end: charEnd, text: cited.text },
      },
    }
  })
}

/** Usage in the protocol's form, which counts cached tokens in the prompt tokens. */
export function protocolUsage({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens }: Quantities): ProtocolObject {
  const prompt = inputTokens + cachedInputTokens + cacheWriteTokens
  return {
    prompt_tokens: prompt,
    completion_tokens: outputTokens,
    total_tokens: prompt + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens, ...(cacheWriteTokens > 0 && { cache_write_tokens: cacheWriteTokens }) },
  }
}
