import type { ProtocolObject, TokenUsage } from '../ports/engines.ts'
import { countChunkTokens } from './count-chat-tokens.ts'
import { countedUsage, providerUsage, reportedUsage, type Usage } from './usage.ts'

/** Billing hears of a stream's progress whenever one of the two is over: the most of its price that a crash can lose. */
const CHECKPOINT_TOKENS = 64
const CHECKPOINT_MS = 2_000

/** What one stream has used so far. */
export class StreamMeter {
  readonly #inputTokens: number
  #outputTokens = 0
  #reported: TokenUsage | undefined
  #checkpointTokens = 0
  #checkpointMs: number

  constructor(inputTokens: number, nowMs: number) {
    this.#inputTokens = inputTokens
    this.#checkpointMs = nowMs
  }

  note(chunks: readonly ProtocolObject[]): void {
    for (const chunk of chunks) {
      this.#outputTokens += countChunkTokens(chunk)
      // Vendors that report on every chunk report the sum so far.
      this.#reported = reportedUsage(chunk) ?? this.#reported
    }
  }

  get isReported(): boolean {
    return this.#reported !== undefined
  }

  usage(): Usage {
    return this.#reported ? providerUsage(this.#reported) : countedUsage(this.#inputTokens, this.#outputTokens)
  }

  /** Whether billing should hear of it now; then it counts as told. */
  takeCheckpoint(nowMs: number): boolean {
    const tokens = this.#outputTokens - this.#checkpointTokens
    if (tokens === 0 || (tokens < CHECKPOINT_TOKENS && nowMs - this.#checkpointMs < CHECKPOINT_MS)) return false
    this.#checkpointTokens = this.#outputTokens
    this.#checkpointMs = nowMs
    return true
  }
}
