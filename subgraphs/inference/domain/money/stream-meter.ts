import type { ProtocolObject, TokenUsage } from '../../ports/engines.ts'
import { countChunk, type OutputCount } from '../chat/count-chat-tokens.ts'
import { believedUsage, isZeroReported, reportedUsage, type Usage } from '../tokens/usage.ts'

/**
 * A stream reports its usage to billing after this many tokens, or this long. A crash loses at most what came since.
 */
const CHECKPOINT_TOKENS = 64
const CHECKPOINT_MS = 2_000

/**
 * An engine may send single characters, which are not tokens. So an answer is too long only if its text is, too.
 * English has 4 to 5 units for each token.
 */
const UNITS_PER_TOKEN = 4

/** What one stream has used so far. */
export class StreamMeter {
  readonly #inputTokens: number
  readonly #mostOutputTokens: number
  readonly #written: OutputCount = { tokens: 0, fewest: 0, units: 0 }
  #reported: TokenUsage | undefined
  /** The tokens that were counted when the report came. */
  #reportedAt = 0
  #checkpointTokens = 0
  #checkpointMs: number

  /** `mostOutputTokens`: the output that the hold covers. */
  constructor(inputTokens: number, mostOutputTokens: number, nowMs: number) {
    this.#inputTokens = inputTokens
    this.#mostOutputTokens = mostOutputTokens
    this.#checkpointMs = nowMs
  }

  /** Counts chunks up to the one that uses up the hold, and gives those. */
  note(chunks: readonly ProtocolObject[]): readonly ProtocolObject[] {
    for (const [index, chunk] of chunks.entries()) {
      countChunk(chunk, this.#written)
      // Vendors that report usage in every chunk report the sum so far.
      const reported = reportedUsage(chunk)
      if (reported) {
        this.#reported = reported
        this.#reportedAt = this.#written.tokens
      }
      if (this.isSpent) return chunks.slice(0, index + 1)
    }
    return chunks
  }

  /** True: the engine has certainly written more than the request allows and the hold covers. */
  get isSpent(): boolean {
    const most = this.#mostOutputTokens
    const { fewest, units } = this.#written
    return (fewest > most && units > most * UNITS_PER_TOKEN) || (this.#reported?.outputTokens ?? 0) > most
  }

  /** The engine has reported some usage. */
  get isReported(): boolean {
    return this.#reported !== undefined && Object.values(this.#reported).some((tokens) => tokens > 0)
  }

  /** The engine has reported zero for what was not empty. */
  get isZeroReported(): boolean {
    return isZeroReported(this.#reported, this.usage(true))
  }

  /**
   * The usage so far. At the proper end of the stream (`isWhole`) it is the engine's report, if that came after all
   * output. In all other cases, it is the larger of the reported and the counted output.
   */
  usage(isWhole = false): Usage {
    const { tokens } = this.#written
    const counted = this.isSpent ? Math.min(tokens, this.#mostOutputTokens) : tokens
    const believed = believedUsage(this.#reported, this.#inputTokens, () => counted)
    const isCovered = isWhole && this.#reportedAt === tokens
    if (isCovered || counted <= believed.quantities.outputTokens) return believed
    return { quantities: { ...believed.quantities, outputTokens: counted }, source: 'counted' }
  }

  /** True: report the usage to billing now. It then counts as reported. */
  claimCheckpoint(nowMs: number): boolean {
    const tokens = this.#written.tokens - this.#checkpointTokens
    if (tokens === 0 || (tokens < CHECKPOINT_TOKENS && nowMs - this.#checkpointMs < CHECKPOINT_MS)) return false
    this.#checkpointTokens = this.#written.tokens
    this.#checkpointMs = nowMs
    return true
  }
}
