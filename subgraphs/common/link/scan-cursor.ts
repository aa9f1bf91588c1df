import { KisError } from '../errors.ts'

/** The cursor with which the operator's next call continues a pass over a store. */
export function encodeScanCursor(position: object): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** @throws {KisError} `invalid_request`: `encodeScanCursor` did not make this cursor for a place of this shape */
export function decodeScanCursor<Position>(
  cursor: string,
  isPosition: (value: Readonly<Record<string, unknown>>) => boolean,
  param: string,
): Position {
  try {
    const value = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (isPosition(value)) return value as Position
  } catch {
    // Refused below.
  }
  throw new KisError('invalid_request', 'The cursor is not one that this operation gave.', { param })
}
