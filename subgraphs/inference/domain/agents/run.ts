import type { ErrorCode } from '../../../../schema/errors.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { FoundChunk } from '../../ports/knowledge.ts'
import type { ToolCall } from '../chat/chat-response.ts'

export type RunStatus = 'running' | 'completed' | 'failed' | 'cancelled'

/** A line of a run's receipt: a call of a model, or a search with the embedding of its query. Costs in nano-USD. */
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

/** The events of a run, in order. `number` counts the calls of the model from 1. */
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

/** A passage that the run has found and the answer cites. */
export type Citation = Omit<FoundChunk, 'score' | 'headingPath'> & {
  /** As in `[#1]`. */
  readonly mark: number
}

export interface RunOutcome {
  /** Without marks of unknown passages. */
  readonly text: string
  /** True: the text says why the model refuses to answer. */
  readonly isRefusal: boolean
  /** Of the last call of the model; null: its engine gave none. */
  readonly finishReason: string | null
  /** The answer by the agent's schema; undefined without a schema. */
  readonly output?: unknown
  readonly citations: readonly Citation[]
  /** The mark after those of the passages that the model was shown. Absent in runs of earlier versions. */
  readonly nextMark?: number
}

/** Tokens of all calls of the model together. */
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
