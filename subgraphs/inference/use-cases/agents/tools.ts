import type { ProtocolObject } from '../../ports/engines.ts'
import type { FoundChunk } from '../../ports/knowledge.ts'

/** A tool that a model may call in a run. */
export interface Tool {
  readonly name: string
  /** In the form of the chat protocol. */
  readonly definition: ProtocolObject
  /**
   * @param args the model's text, which may not be valid JSON.
   * @throws {KisError} `invalid…`: the arguments are wrong; the model is told. Any other error ends the run.
   */
  call(args: string): Promise<ToolResult>
}

/** A text for the model, or passages, which get their marks in the order of the calls. */
export type ToolResult = string | readonly FoundChunk[]

/** Returns the answer that tells a model about a failed call, so that it can correct the call or do without it. */
export function toolFailure(message: string): string {
  return JSON.stringify({ error: message })
}
