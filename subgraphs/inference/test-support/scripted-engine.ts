import { endableIterator } from '../../common/process/endable-iterator.ts'
import type {
  ChatEngine,
  EmbeddingEngine,
  EngineCall,
  ProtocolObject,
  RerankEngine,
  Reranking,
  TranscriptionEngine,
  TranscriptionOptions,
} from '../ports/engines.ts'

/** What a chat engine does: gives the items of a stream in order, fails at an error, and waits forever at `wait`. */
export type Step = readonly ProtocolObject[] | Error | 'wait'

/** An engine with answers that a test writes, which records what reached it. */
export class ScriptedEngine {
  chats = 0
  embeds = 0
  /** Streams that were ended before their own end, and calls whose signal was aborted. */
  ended = 0
  readonly requests: ProtocolObject[] = []
  readonly calls: EngineCall[] = []
  readonly embedded: (readonly string[] | readonly (readonly number[])[])[] = []
  /** Answers of `complete`; the last one repeats. */
  completions: (ProtocolObject | Error | 'wait')[] = [completion()]
  /** Errors with which `stream` rejects, call by call. */
  openings: (Error | 'wait')[] = []
  /** What `stream` gives, call by call; then `steps`. */
  streams: (readonly Step[])[] = []
  steps: Step[] = [...stream(3), [usageChunk(20, 3)]]
  /** The token count of a text. */
  countWords = (text: string) => text.split(' ').length
  createVector: (text: string | readonly number[], dimensions: number | null) => Float32Array = (_text, dimensions) => unit(dimensions ?? 4)
  /** The tokens that it reports for each text. */
  embedTokens = 10
  embedFailure: Error | 'wait' | null = null
  maxBatch = 3
  readonly transcribed: TranscriptionOptions[] = []
  transcript: ProtocolObject | Error | 'wait' = { text: 'Hello' }
  readonly reranked: (readonly string[])[] = []
  /** What calls to rerank report; the last one repeats. A document's score is its length. */
  rerankings: (Pick<Reranking, 'tokens' | 'searchUnits'> | Error)[] = [{ tokens: null, searchUnits: null }]
  /** What a streamed transcription gives, unless `transcript` fails or waits. */
  transcriptSteps: Step[] = []

  readonly chat: ChatEngine & { fetchesImages: boolean } = {
    fetchesImages: true,
    hasLogprobs: true,
    complete: async (call, request, signal) => {
      this.#note(call, request)
      const completion = this.completions.length > 1 ? this.completions.shift()! : this.completions[0]!
      if (completion === 'wait') return this.#never(signal)
      if (completion instanceof Error) throw completion
      return completion
    },
    stream: async (call, request, signal) => {
      this.#note(call, request)
      const opening = this.openings.shift()
      if (opening === 'wait') return this.#never(signal)
      if (opening) throw opening
      const steps = this.streams.shift() ?? this.steps
      return this.#play(steps, signal)
    },
  }

  readonly transcription: TranscriptionEngine = {
    transcribe: async (call, _audio, options, signal) => {
      this.calls.push(call)
      this.transcribed.push(options)
      if (this.transcript === 'wait') return this.#never(signal)
      if (this.transcript instanceof Error) throw this.transcript
      return this.transcript
    },
    stream: async (call, _audio, options, signal) => {
      this.calls.push(call)
      this.transcribed.push(options)
      if (this.transcript === 'wait') return this.#never(signal)
      if (this.transcript instanceof Error) throw this.transcript
      return this.#play(this.transcriptSteps, signal)
    },
  }

  readonly embedding: EmbeddingEngine = this.#embeddingEngine()
  readonly rerank: RerankEngine = this.#rerankEngine()

  #embeddingEngine(): EmbeddingEngine {
    const engine = this
    return {
      calibration: null,
      get maxBatch() {
        return engine.maxBatch
      },
      countTokens: async (texts) => texts.map((text) => engine.countWords(text)),
      embed: async (call, input, signal) => {
        engine.embeds += 1
        engine.calls.push(call)
        engine.embedded.push(input)
        if (engine.embedFailure === 'wait') return engine.#never(signal)
        if (engine.embedFailure) throw engine.embedFailure
        const vectors = (input as readonly (string | readonly number[])[]).map((item) => engine.createVector(item, call.dimensions))
        return { vectors, tokens: input.length * engine.embedTokens, source: 'provider' }
      },
    }
  }

  #rerankEngine(): RerankEngine {
    const engine = this
    return {
      get maxBatch() {
        return engine.maxBatch
      },
      rerank: async (call, _query, documents) => {
        engine.calls.push(call)
        engine.reranked.push(documents)
        const report = engine.rerankings.length > 1 ? engine.rerankings.shift()! : engine.rerankings[0]!
        if (report instanceof Error) throw report
        return { scores: documents.map(({ length }) => length), ...report }
      },
    }
  }

  #play(steps: readonly Step[], signal: AbortSignal): AsyncIterableIterator<readonly ProtocolObject[]> {
    let next = 0
    let isDone = false
    return endableIterator(
      async () => {
        const step = steps[next++]
        if (step === 'wait') return new Promise<never>(() => undefined)
        if (step instanceof Error) throw step
        isDone = step === undefined
        return step ? { done: false, value: step } : { done: true, value: undefined }
      },
      () => {
        if (!isDone) this.ended += 1
      },
      signal,
    )
  }

  #note(call: EngineCall, request: ProtocolObject): void {
    this.chats += 1
    this.calls.push(call)
    this.requests.push(request)
  }

  #never(signal: AbortSignal): Promise<never> {
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        this.ended += 1
        reject(signal.reason)
      })
    })
  }
}

export function completion(fields: ProtocolObject = { usage: usage(20, 5) }): ProtocolObject {
  const message = { role: 'assistant', content: 'Hello there', refusal: null }
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_750_000_000,
    model: 'vendor-name',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    ...fields,
  }
}

export function usage(prompt_tokens: number, completion_tokens: number, cached_tokens = 0) {
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens, prompt_tokens_details: { cached_tokens } }
}

const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'vendor-name' }

/** An answer in one piece, with its usage. */
export function says(content: string): readonly Step[] {
  const delta = { role: 'assistant', content }
  return [[{ ...HEAD, choices: [{ index: 0, delta, finish_reason: 'stop' }] }], [usageChunk(20, 3)]]
}

/** Tool calls, as `[name, arguments]`. */
export function calls(...wanted: readonly (readonly [string, unknown])[]): readonly Step[] {
  const tool_calls = wanted.map(([name, args], index) => ({
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }))
  const delta = { role: 'assistant', content: null, tool_calls }
  return [[{ ...HEAD, choices: [{ index: 0, delta, finish_reason: 'tool_calls' }] }], [usageChunk(20, 3)]]
}

/** `count` items of one word each. */
export function stream(count: number): Step[] {
  return Array.from({ length: count }, (_, index) => [
    {
      ...HEAD,
      choices: [
        {
          index: 0,
          delta: { ...(index === 0 && { role: 'assistant' }), content: `w${index} ` },
          finish_reason: index === count - 1 ? 'stop' : null,
        },
      ],
    },
  ])
}

export function usageChunk(prompt: number, output: number): ProtocolObject {
  return { ...HEAD, choices: [], usage: usage(prompt, output) }
}

export function unit(length: number): Float32Array {
  return new Float32Array(length).fill(1 / Math.sqrt(length))
}
