import { createHash } from 'node:crypto'
import { KisError } from '../../common/errors.ts'
import { checkPlain } from '../../common/plain-text.ts'

const MAX_EXTERNAL_ID = 200

/**
 * Returns the ID that a caller gives a document (`externalId`).
 * @throws {KisError} the ID is invalid; the error has the `param`
 */
export function requireExternalId(value: string, param: string): string {
  if (value.length === 0 || value.trim() !== value)
    throw new KisError('invalid_request', 'An external id is a text without white space around it.', { param })
  checkPlain(value, param)
  if (value.length <= MAX_EXTERNAL_ID) return value
  throw new KisError('string_above_max_length', `An external id has at most ${MAX_EXTERNAL_ID} characters.`, { param })
}

/** Returns the `attachKey` of the document whose live file has these bytes. */
export function bytesKey(collectionId: string, sha256: string): string {
  return `${collectionId}_${sha256}`
}

/** Returns the `versionKey` of the document with this external ID. */
export function externalKey(collectionId: string, externalId: string): string {
  return `${collectionId}_id_${hash(externalId)}`
}

/** Returns the `versionKey` of the document that was attached to replace others of this name. */
export function nameKey(collectionId: string, fileName: string): string {
  return `${collectionId}_name_${hash(fileName)}`
}

/** Returns a hash of constant length, because MongoDB and SQLite limit the length of index keys. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
