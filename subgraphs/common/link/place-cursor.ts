import { KisError } from '../errors.ts'

/** Where a pass over a store goes on, as the operator's next call gives it back. */
export function cursorOf(place: object): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

/** @throws {KisError} `invalid_request`: it is none that `cursorOf` gave for a place of this shape. */
export function placeOf<Place>(cursor: string, isPlace: (value: Readonly<Record<string, unknown>>) => boolean, param: string): Place {
  try {
    const value = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (isPlace(value)) return value as Place
  } catch {
    // Refused below.
  }
  throw new KisError('invalid_request', 'The cursor is not one that this operation gave.', { param })
}
