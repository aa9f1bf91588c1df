import { gatewayOperation, type OperationText } from '../../../schema/operations.ts'

const APPEND = gatewayOperation(`mutation AppendToUpload($input: AppendToUploadInput!) {
  appendToUpload(input: $input) { upload { offset } } }`)

/** Bytes of one call. With its base64 and the JSON around it, a call holds some 8 MiB. */
export const PIECE_BYTES = 2 * 1024 * 1024

/** What one piece that comes in, its base64 and the request that carries it hold. */
export const STREAM_BYTES = 8 * 1024 * 1024

/** Runs operations of the gateway for the sender of the bytes. */
export interface Asker {
  /**
   * `names`: what the sender calls the inputs that errors name.
   * @throws {KisError} the first error of the operation
   */
  ask<Data>(
    query: OperationText<Data, never>,
    variables?: Readonly<Record<string, unknown>>,
    names?: Readonly<Record<string, string>>,
  ): Promise<Data>
  /** As `ask`, for something that is left over if its answer is lost: it goes on for some seconds when the sender leaves. */
  askThrough: Asker['ask']
  /** Runs one operation even after the sender has left, for some seconds. It does not reject. */
  cleanUp(query: OperationText<unknown, never>, variables: Readonly<Record<string, unknown>>): Promise<void>
  /** Its signal aborts when the sender has left. */
  readonly context: { readonly signal: AbortSignal }
}

/**
 * Appends what comes in to an upload, piece by piece, and returns the new offset. If the client leaves in the middle,
 * what has come in is kept, so that it can continue from there.
 */
export async function appendStream(
  asker: Asker,
  id: string,
  offset: number,
  source: AsyncIterable<Uint8Array>,
  names: Readonly<Record<string, string>> = {},
): Promise<number> {
  let at = offset
  let held: Uint8Array[] = []
  let heldBytes = 0
  const take = () => {
    const contentBase64 = Buffer.concat(held, heldBytes).toString('base64')
    const input = { id, offset: at, contentBase64 }
    at += heldBytes
    held = []
    heldBytes = 0
    return { input }
  }
  try {
    for await (const bytes of source) {
      // A chunk of a form may be as long as the form.
      for (let from = 0; from < bytes.length; ) {
        const part = bytes.subarray(from, from + PIECE_BYTES - heldBytes)
        from += part.length
        held.push(part)
        heldBytes += part.length
        if (heldBytes === PIECE_BYTES) await asker.ask(APPEND, take(), names)
      }
    }
  } catch (error) {
    if (heldBytes > 0 && asker.context.signal.aborted) await asker.cleanUp(APPEND, take())
    throw error
  }
  if (heldBytes > 0) await asker.ask(APPEND, take(), names)
  return at
}
