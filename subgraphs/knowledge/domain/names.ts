import { KisError } from '../../common/errors.ts'
import { checkPlain } from '../../common/plain-text.ts'

/**
 * Returns the trimmed display name: 1 to `maxLength` characters, none of them invisible.
 * @throws {KisError} the name is invalid; has the `param`
 */
export function requireName(value: string, maxLength: number, param: string): string {
  const name = value.trim().normalize('NFC')
  if (name.length === 0) throw new KisError('invalid_request', 'A name must not be empty.', { param })
  if (name.length > maxLength) throw new KisError('string_above_max_length', `A name has at most ${maxLength} characters.`, { param })
  checkPlain(name, param)
  return name
}

/** The longest file name on common file systems, counted in characters here. */
const MAX_FILE_NAME = 255

/**
 * Returns the file name without its path.
 * @throws {KisError} the name is invalid; has the `param`
 */
export function requireFileName(value: string, param: string): string {
  const name = requireName(value, MAX_FILE_NAME, param)
  if (/[/\\]/.test(name) || name === '.' || name === '..') {
    throw new KisError('invalid_request', 'A file name must not contain a path.', { param })
  }
  return name
}

const MAX_METADATA_FIELDS = 32
const MAX_METADATA_KEY = 64
const MAX_METADATA_VALUE = 512

type Metadata = Readonly<Record<string, string | number | boolean>>

/**
 * Returns the metadata of a document, a flat object.
 * @throws {KisError} a field is invalid; has the field's path
 */
export function requireMetadata(value: unknown, param: string): Metadata {
  if (value === null || value === undefined) return {}
  if (typeof value !== 'object' || Array.isArray(value))
    throw new KisError('invalid_type', 'Metadata is an object of strings, numbers and booleans.', { param })
  const entries = Object.entries(value)
  if (entries.length > MAX_METADATA_FIELDS)
    throw new KisError('invalid_request', `Metadata has at most ${MAX_METADATA_FIELDS} fields.`, { param })
  for (const [key, field] of entries) {
    if (!/^[\p{L}_][\p{L}\p{M}\p{N}_]*$/u.test(key) || key.length > MAX_METADATA_KEY) {
      throw new KisError(
        'invalid_request',
        `A metadata field has a name of at most ${MAX_METADATA_KEY} letters of any script, digits and \`_\`.`,
        {
          param: `${param}.${key.slice(0, 80)}`,
        },
      )
    }
    if (typeof field === 'string' ? field.length > MAX_METADATA_VALUE : typeof field !== 'boolean' && !Number.isSafeInteger(field)) {
      throw new KisError(
        'invalid_type',
        `A metadata value is a string of at most ${MAX_METADATA_VALUE} characters, a whole number or a boolean.`,
        { param: `${param}.${key}` },
      )
    }
  }
  return Object.fromEntries(entries) as Metadata
}
