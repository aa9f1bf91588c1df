import { gatewayOperation } from '../../schema/operations.ts'
import type { Call } from '../http/route.ts'

const APPEND = gatewayOperation(`mutation AppendToUpload($input: AppendToUploadInput!) {
  appendToUpload(input: $input) { upload { offset } } }`)

/** Bytes of one call. With its base64 and the JSON around it, a call holds some 8 MiB. */
export const PIECE_BYTES = 2 * 1024 * 1024

/** What one piece that comes in, its base64 and the request that carries it hold. */
export const STREAM_BYTES = 8 * 1024 * 1024

/**
 * Appends what comes in to an upload, piece by piece, and returns the new offset. If the client leaves in the middle,
 * what has come in is kept, so that it can continue from there.
 */
export async function appendStream(
  call: Pick<Call, 'execute' | 'cleanUp' | 'context'>,
  id: string,
  offset: number,
  source: AsyncIterable<Uint8Array>,
  names: Readonly<Record<string, string>> = {},
): Promise<number> {
  let at = offset
  let held: Uint8Array[] = []
  let heldBytes = 0
  const drain = () => {
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
        if (heldBytes === PIECE_BYTES) await call.execute(APPEND, drain(), names)
      }
    }
  } catch (error) {
    if (heldBytes > 0 && call.context.signal.aborted) await call.cleanUp(APPEND, drain())
    throw error
  }
  if (heldBytes > 0) await call.execute(APPEND, drain(), names)
  return at
}
