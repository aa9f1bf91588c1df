import { createHash } from 'node:crypto'
import { KisError } from '../../common/errors.ts'

const MAX_EXTERNAL_ID = 200

/** @throws {KisError} the id is wrong; has the `param` */
export function requireExternalId(value: string, param: string): string {
  if (value.length === 0 || value.trim() !== value || /\p{Cc}/u.test(value)) {
    const message = 'An external id is a text without control characters, and without white space around it.'
    throw new KisError('invalid_request', message, { param })
  }
  if (value.length <= MAX_EXTERNAL_ID) return value
  throw new KisError('string_above_max_length', `An external id has at most ${MAX_EXTERNAL_ID} characters.`, { param })
}

/** The document of a collection whose live file has these bytes. */
export function bytesKey(collectionId: string, sha256: string): string {
  return `${collectionId}_${sha256}`
}

/** The document of a collection with this external id. */
export function externalKey(collectionId: string, externalId: string): string {
  return `${collectionId}_id_${hash(externalId)}`
}

/** The document of a collection that was attached to replace others of this name. */
export function nameKey(collectionId: string, fileName: string): string {
  return `${collectionId}_name_${hash(fileName)}`
}

/** Of one length, because MongoDB and SQLite bound keys of indexes. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
