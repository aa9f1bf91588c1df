import type { ProtocolObject } from '../../ports/engines.ts'
import type { Passage } from '../../ports/knowledge.ts'

/** What a model may call in a run. */
export interface Tool {
  readonly name: string
  /** As the chat protocol has it. */
  readonly definition: ProtocolObject
  /**
   * @param args what the model wrote: JSON, or not.
   * @throws {KisError} `invalid…`: what the model did wrong, which it is told. Anything else ends the run.
   */
  call(args: string): Promise<ToolAnswer>
}

/** A text as the model is to read it; or passages, which get their marks once it is their turn. */
export type ToolAnswer = string | readonly Passage[]

/** What a model is told that may mend it, or do without. */
export function toolFailure(message: string): string {
  return JSON.stringify({ error: message })
}
