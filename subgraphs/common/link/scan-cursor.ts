import { KisError } from '../errors.ts'

/** Encodes the cursor with which the operator's next call continues a scan of a store. */
export function encodeScanCursor(position: object): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** @throws {KisError} `invalid_request`: `encodeScanCursor` did not create this cursor for a position of this shape */
export function decodeScanCursor<Position>(
  cursor: string,
  isPosition: (value: Readonly<Record<string, unknown>>) => boolean,
  param: string,
): Position {
  try {
    const value = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (isPosition(value)) return value as Position
  } catch {
    // The error follows below.
  }
  throw new KisError('invalid_request', 'The cursor is not from this operation.', { param })
}
