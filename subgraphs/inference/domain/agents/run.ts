import type { ErrorCode } from '../../../../schema/errors.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { FoundChunk } from '../../ports/knowledge.ts'
import type { ToolCall } from '../chat/chat-response.ts'

export type RunStatus = 'running' | 'completed' | 'failed' | 'cancelled'

/** A line of a run's receipt: a model call, or a search with the embedding of its query. Costs are in nano-USD. */
export type RunStep =
  | { readonly kind: 'model'; readonly number: number; readonly modelId: string; readonly quantities: Quantities; readonly cost: bigint }
  | {
      readonly kind: 'search'
      readonly number: number
      readonly collectionId: string
      readonly query: string
      readonly hits: number
      readonly cost: bigint
    }
  /** Calls that were cut off before they reported their usage. */
  | { readonly kind: 'cut'; readonly number: number; readonly cost: bigint }

/** The events of a run, in order. `number` counts the model calls from 1. */
export type RunEvent =
  | { readonly type: 'run_started'; readonly agentVersion: number }
  | { readonly type: 'step_started'; readonly number: number }
  | { readonly type: 'text_delta'; readonly number: number; readonly text: string }
  | ({ readonly type: 'tool_call'; readonly number: number } & ToolCall)
  | {
      readonly type: 'search'
      readonly number: number
      readonly collectionId: string
      readonly query: string
      readonly hits: readonly SearchHit[]
    }
  | { readonly type: 'usage'; readonly step: RunStep }
  /** The last event. */
  | { readonly type: 'done'; readonly status: Exclude<RunStatus, 'running'> }

interface SearchHit {
  readonly chunkId: string
  readonly score: number
  readonly fileName: string
  readonly pageStart: number | null
}

/** A chunk that the run found and the reply cites. */
export type Citation = Omit<FoundChunk, 'score' | 'headingPath'> & {
  /** The number in `[#1]`. */
  readonly mark: number
}

/** The result of a completed run. */
export interface RunOutcome {
  /** The reply without marks of unknown chunks. */
  readonly text: string
  /** True: the text says why the model refuses to answer. */
  readonly isRefusal: boolean
  /** The finish reason of the last model call. Null: the engine sent none. */
  readonly finishReason: string | null
  /** The reply, parsed by the agent's schema. Undefined without a schema. */
  readonly output?: unknown
  readonly citations: readonly Citation[]
  /** The first mark above those of the chunks that the model was shown. Absent in runs of earlier versions. */
  readonly nextMark?: number
}

/** Sums the tokens of all model calls. */
export function quantitiesOfSteps(steps: readonly RunStep[]): Quantities {
  const calls = steps.flatMap((step) => (step.kind === 'model' ? step.quantities : []))
  const sumUnit = (unit: keyof Quantities) => calls.reduce((sum, quantities) => sum + (quantities[unit] ?? 0), 0)
  return {
    inputTokens: sumUnit('inputTokens'),
    cachedInputTokens: sumUnit('cachedInputTokens'),
    cacheWriteTokens: sumUnit('cacheWriteTokens'),
    outputTokens: sumUnit('outputTokens'),
    audioMilliseconds: sumUnit('audioMilliseconds'),
    searchUnits: sumUnit('searchUnits'),
  }
}

export type RunError = {
  readonly code: ErrorCode
  readonly message: string
}
