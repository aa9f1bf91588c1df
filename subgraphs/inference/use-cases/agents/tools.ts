import type { ProtocolObject } from '../../ports/engines.ts'
import type { FoundChunk } from '../../ports/knowledge.ts'

/** A tool that a model may call in a run. */
export interface Tool {
  readonly name: string
  /** The tool's definition in the chat protocol. */
  readonly definition: ProtocolObject
  /**
   * @param args the model's text, which may not be valid JSON.
   * @throws {KisError} `invalid…`: the arguments are wrong; the model gets the message. Any other error ends the run.
   */
  call(args: string): Promise<ToolResult>
}

/** A text for the model, or chunks, which get their marks in the order of the calls. */
export type ToolResult = string | readonly FoundChunk[]

/**
 * Returns the result that informs a model about a failed call, so that the model can correct the call or continue
 * without it.
 */
export function toolFailure(message: string): string {
  return JSON.stringify({ error: message })
}
