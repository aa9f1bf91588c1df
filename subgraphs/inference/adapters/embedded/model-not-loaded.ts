/** The model's files are missing or damaged. */
export class ModelNotLoaded extends Error {
  override readonly name = 'ModelNotLoaded'

  /** @throws {ModelNotLoaded} always */
  static rethrow(this: void, cause: unknown): never {
    throw new ModelNotLoaded(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}
