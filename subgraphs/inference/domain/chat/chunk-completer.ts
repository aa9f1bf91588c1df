import type { ProtocolObject } from '../../ports/engines.ts'
import { reportedUsage, type Usage } from '../tokens/usage.ts'
import {
  asObject,
  buildHead,
  checkCount,
  completeUsage,
  defaultFinishReason,
  isIndex,
  isText,
  type ResponseNames,
  toFinishReason,
  withoutOddFacts,
} from './complete-response.ts'
import { MAX_CHOICES } from './sampling-fields.ts'
import { ToolCallDeltas } from './tool-call-deltas.ts'

interface OpenChoice {
  readonly calls: ToolCallDeltas
  isFinished: boolean
}

/**
 * Completes the chunks of one streamed answer to what the protocol promises: one `id`, `created` and `model`, a first
 * delta with the role in each choice, `finish_reason` null until a choice's last chunk, tool calls with stable indices,
 * and the usage once, in a last chunk without choices. What the engine said stays unchanged, but for names and facts
 * that do not look like any. Strictly typed clients
 * fail on missing fields, and count twice what comes twice.
 */
export class ChunkCompleter {
  readonly #names: ResponseNames
  #head: ProtocolObject | undefined
  readonly #choices = new Map<number, OpenChoice>()
  /** Chunks without id or choices before the first chunk with an id: reports of a vendor's filter. */
  #nameless: ProtocolObject[] = []
  /** The last chunk with a usage. */
  #usageChunk: ProtocolObject | undefined

  constructor(names: ResponseNames) {
    this.#names = names
  }

  /** @throws {KisError} `engine_error`: the answer has more choices or calls of tools than a right one */
  write(chunks: readonly ProtocolObject[]): readonly ProtocolObject[] {
    return chunks.flatMap((chunk) => this.#chunk(chunk))
  }

  /**
   * Gives the end of an answer. `isCut`: the call ended early. `counted`: the usage if the engine reported none. Gives
   * nothing if there was no chunk.
   */
  end(counted: Usage, isCut = false): readonly ProtocolObject[] {
    const head = this.#head
    if (!head) return []
    const ends = [...this.#choices].flatMap(([index, { calls, isFinished }]) =>
      isFinished
        ? []
        : [{ ...head, choices: [{ index, delta: {}, logprobs: null, finish_reason: isCut ? 'length' : defaultFinishReason(calls.any) }] }],
    )
    return [
      ...ends,
      { ...withoutOddFacts(this.#usageChunk ?? {}), ...head, choices: [], usage: completeUsage(this.#usageChunk ?? {}, counted) },
    ]
  }

  #chunk(chunk: ProtocolObject): readonly ProtocolObject[] {
    const choices = Array.isArray(chunk.choices) ? chunk.choices : []
    checkCount(choices.length, MAX_CHOICES, 'choices')
    if (!this.#head && choices.length === 0 && !isText(chunk.id)) {
      this.#nameless.push(chunk)
      return []
    }
    const before = this.#head ? [] : this.#open(chunk)
    if (reportedUsage(chunk)) this.#usageChunk = choices.length > 0 ? { usage: chunk.usage } : chunk
    if (chunk.usage && choices.length === 0) return before
    const opening: ProtocolObject[] = []
    const completed = choices.map((choice, position) => this.#choice(asObject(choice), position, opening))
    return [...before, ...opening, { ...withoutOddFacts(withoutUsage(chunk)), ...this.#head, choices: completed }]
  }

  #open(chunk: ProtocolObject): readonly ProtocolObject[] {
    const head = buildHead(chunk, 'chat.completion.chunk', this.#names)
    this.#head = head
    const waiting = this.#nameless.map((each) => ({ ...withoutOddFacts(withoutUsage(each)), ...head, choices: [] }))
    this.#nameless = []
    return waiting
  }

  #choice(choice: ProtocolObject, position: number, opening: ProtocolObject[]): ProtocolObject {
    const index = isIndex(choice.index) ? (choice.index as number) : position
    const { role, ...rest } = asObject(choice.delta)
    let open = this.#choices.get(index)
    let delta: ProtocolObject = rest
    if (!open) {
      checkCount(this.#choices.size + 1, MAX_CHOICES, 'choices')
      open = { calls: new ToolCallDeltas(this.#names), isFinished: false }
      this.#choices.set(index, open)
      if (isText(role)) delta = { role: 'assistant', ...rest }
      else {
        const first = { role: 'assistant', content: '', refusal: null }
        opening.push({ ...this.#head, choices: [{ index, delta: first, logprobs: null, finish_reason: null }] })
      }
    }
    if (Array.isArray(delta.tool_calls)) delta = { ...delta, tool_calls: delta.tool_calls.map((call) => open.calls.write(asObject(call))) }
    const finishReason = toFinishReason(choice.finish_reason, open.calls.any)
    open.isFinished ||= finishReason !== null
    return { ...choice, index, delta, finish_reason: finishReason }
  }
}

function withoutUsage(chunk: ProtocolObject): ProtocolObject {
  if (!chunk.usage) return chunk
  const { usage: _, ...rest } = chunk
  return rest
}
