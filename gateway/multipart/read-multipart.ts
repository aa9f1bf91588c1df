import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { KisError } from '../../subgraphs/common/errors.ts'
import { parseBoundedJson } from '../../subgraphs/common/server/bodies/bounded-json.ts'
import { readForm } from '../../subgraphs/common/uploads/form-stream.ts'

/** Files of one request. */
const MAX_FILES = 10
/** Places in the variables that one request may give files to. */
const MAX_PLACES = 20
/** Bytes of `operations`, as of a message over a socket. Content belongs into a file. */
const MAX_FIELD_BYTES = 1024 * 1024

/**
 * No page of another origin can send one of them without asking first, in a preflight. Browsers send a form without.
 * The names that Apollo's servers and clients, and Hive's, use.
 */
const PREFLIGHT_HEADERS = ['apollo-require-preflight', 'graphql-preflight', 'x-apollo-operation-name']

export type Body = Readonly<Record<string, unknown>>

export interface MultipartReader {
  /**
   * Called before the files come in. False: the operation cannot run, so that nothing is stored for it.
   * @throws what the request is refused with
   */
  judge(operation: Body): boolean
  /** Stores a file and gives what stands for it in the variables. `param`: its first place. */
  store(fileName: string, bytes: Readable, param: string): Promise<string>
}

export function isMultipart(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.toLowerCase().startsWith('multipart/form-data') ?? false
}

/** @throws {KisError} `invalid_request`: it might come from any page */
export function requirePreflight(headers: IncomingHttpHeaders): void {
  if (PREFLIGHT_HEADERS.some((name) => headers[name])) return
  throw new KisError(
    'invalid_request',
    'A multipart request needs the header `apollo-require-preflight: true` or `graphql-preflight: 1`, so that no other page can send it unseen.',
  )
}

/** Ends the reading of a form whose operation cannot run. */
class Unneeded extends Error {}

/**
 * Reads a request of the GraphQL multipart request specification: `operations`, then `map`, then the files. They are
 * stored while they come in. Gives the operation, as a JSON body has it, with the files in its variables.
 * @throws {KisError} the request breaks the specification or a bound, or a file was not stored
 */
export async function readMultipart(headers: IncomingHttpHeaders, stream: Readable, reader: MultipartReader): Promise<Body> {
  let operation: Body | undefined
  let places: ReadonlyMap<string, readonly string[]> | undefined
  const stored = new Map<string, string>()
  // One file after another: the request was admitted for one piece.
  let last: Promise<unknown> = Promise.resolve()
  try {
    await readForm(
      { headers, stream },
      {
        maxFieldBytes: MAX_FIELD_BYTES,
        field(name, text) {
          if (name === 'operations') operation = readOperation(text)
          else if (name === 'map' && operation) {
            places = readMap(text, operation)
            if (!reader.judge(operation)) throw new Unneeded()
          } else if (name === 'map') throw new KisError('invalid_request', 'Send `operations` before `map`.', { param: name })
          else throw notInMap(name)
        },
        file({ name, fileName, bytes }) {
          if (!places) throw new KisError('invalid_request', 'Send `operations` and `map` before the files.', { param: name })
          const own = places.get(name)
          if (!own) throw notInMap(name)
          last = last.then(async () => {
            // The form has failed in the meantime.
            if (bytes.errored) throw bytes.errored
            stored.set(name, await reader.store(fileName, bytes, own[0]!))
          })
          return last
        },
      },
    )
  } catch (error) {
    if (error instanceof Unneeded) return operation!
    throw error
  }
  if (!operation || !places)
    throw new KisError('invalid_request', 'A multipart request has the fields `operations` and `map`, and its files.')
  for (const [name, paths] of places) {
    const value = stored.get(name)
    if (value === undefined)
      throw new KisError('missing_required_parameter', `The file \`${name}\` of the map is not there.`, { param: name })
    for (const path of paths) put(operation, path, value)
  }
  return operation
}

function notInMap(name: string): KisError {
  return new KisError('invalid_request', `\`${name}\` is neither \`operations\`, \`map\` nor a file that \`map\` names.`, { param: name })
}

function readOperation(text: string): Body {
  const value = parse(text, 'operations')
  if (Array.isArray(value))
    throw new KisError('invalid_type', '`operations` must be one operation. Send each of several by itself.', { param: 'operations' })
  return value as Body
}

/** The places of each file, such as `variables.file`. Each holds null so far. */
function readMap(text: string, operation: Body): ReadonlyMap<string, readonly string[]> {
  const places = Object.entries(parse(text, 'map'))
  const paths = places.flatMap(([, paths]) => paths)
  if (places.length > MAX_FILES || paths.length > MAX_PLACES)
    throw new KisError('array_above_max_length', `A request has at most ${MAX_FILES} files, in ${MAX_PLACES} places.`, { param: 'map' })
  for (const [name, own] of places) {
    if (!Array.isArray(own) || own.length === 0 || !own.every((path) => typeof path === 'string'))
      throw new KisError('invalid_type', 'Each file of `map` must have a list of places, such as ["variables.file"].', {
        param: `map.${name}`,
      })
    for (const path of own) find(operation, path)
  }
  return new Map(places as [string, string[]][])
}

function parse(text: string, param: string): object {
  let value: unknown
  try {
    value = parseBoundedJson(text)
  } catch (cause) {
    if (cause instanceof KisError) throw cause
    throw new KisError('invalid_request', `\`${param}\` is not valid JSON.`, { param, cause })
  }
  if (typeof value !== 'object' || value === null) throw new KisError('invalid_type', `\`${param}\` must be an object.`, { param })
  return value
}

function put(operation: Body, path: string, value: string): void {
  const { parent, key } = find(operation, path)
  parent[key] = value
}

/** @throws {KisError} `invalid_request`: there is no null at the path */
function find(operation: Body, path: string): { readonly parent: Record<string, unknown>; readonly key: string } {
  const keys = path.split('.')
  let parent: unknown = operation
  for (const key of keys.slice(0, -1)) parent = own(parent, key)
  const key = keys.at(-1)!
  if (keys.length < 2 || keys[0] !== 'variables' || own(parent, key) !== null)
    throw new KisError('invalid_request', `There is no null at \`${path}\` of \`operations\`, where the file belongs.`, { param: 'map' })
  return { parent: parent as Record<string, unknown>, key }
}

function own(parent: unknown, key: string): unknown {
  return typeof parent === 'object' && parent !== null && Object.hasOwn(parent, key) ? (parent as Body)[key] : undefined
}
