import type { Readable } from 'node:stream'
import { gatewayOperation, type OperationText } from '../../schema/operations.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { type Asker, appendStream } from '../../subgraphs/common/uploads/append-stream.ts'
import type { OperationContext, Operations } from '../operations.ts'
import type { Variables } from '../variables.ts'

const CREATE = gatewayOperation(
  'mutation CreateMultipartUpload($input: CreateUploadInput!) { createUpload(input: $input) { upload { id } } }',
)
const CANCEL = gatewayOperation('mutation CancelMultipartUpload($id: ID!) { cancelUpload(id: $id) { upload { id } } }')

/** As long as any call inside the service may take. */
const THROUGH_MS = 10_000

/** The files of one request, stored as uploads. What its operation has not made a file of goes at the `end`. */
export class StoredFiles {
  readonly #asker: Asker
  readonly #ids: string[] = []
  #isOver = false

  constructor(operations: Operations, context: OperationContext) {
    this.#asker = askerOf(operations, context)
  }

  /**
   * Stores the bytes while they come in, and gives the id of their upload.
   * @param param what errors call the file
   * @throws {KisError} what `createUpload` and `appendToUpload` refuse it with; also when the client leaves
   */
  async store(name: string, bytes: Readable, param: string): Promise<string> {
    try {
      const { id } = (await this.#asker.askThrough(CREATE, { input: { name } })).createUpload.upload
      this.#ids.push(id)
      if (this.#isOver || this.#asker.context.signal.aborted) this.#cancel()
      await appendStream(this.#asker, id, 0, bytes)
      return id
    } catch (error) {
      if (!(error instanceof KisError) || !error.param?.startsWith('input.')) throw error
      const { code, message, retryAfterMs, shouldRetry } = error
      throw new KisError(code, message, { param, retryAfterMs, shouldRetry, cause: error })
    }
  }

  /** Call it when the request is answered, or its client has left. */
  end(): void {
    this.#isOver = true
    this.#cancel()
  }

  #cancel(): void {
    for (const id of this.#ids) void this.#asker.cleanUp(CANCEL, { id })
  }
}

function askerOf(operations: Operations, context: OperationContext): Asker {
  async function run<Data>(query: OperationText<Data, never>, variables: Variables, signal: AbortSignal): Promise<Data> {
    const prepared = operations.prepare(query, undefined, context.requestId)
    const { data, errors } = 'document' in prepared ? await operations.execute(prepared, variables, { ...context, signal }) : prepared
    if (errors?.length) throw KisError.fromGraphQL(errors[0]!)
    return data as Data
  }
  return {
    context,
    ask: (query, variables = {}) => run(query, variables, context.signal),
    askThrough: (query, variables = {}) => run(query, variables, AbortSignal.timeout(THROUGH_MS)),
    async cleanUp(query, variables) {
      // An upload that has become a file is not cancelled. One that is left for another reason expires.
      await run(query, variables, AbortSignal.timeout(THROUGH_MS)).catch(() => undefined)
    },
  }
}
