import type { IncomingHttpHeaders } from 'node:http'
import { finished, PassThrough, type Readable } from 'node:stream'
import { Busboy, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy'
import { KisError } from '../errors.ts'
import { sizeText } from '../sizes.ts'

/** Parts of one form. The largest form of any route has about ten. */
const MAX_PARTS = 100
/** Bytes of the headers of one part: a name, a file name, a type. */
const MAX_HEADER_BYTES = 16 * 1024
/** Bytes of one field that is text. */
const MAX_FIELD_BYTES = 16 * 1024

export interface FormStream {
  readonly headers: IncomingHttpHeaders
  readonly stream: Readable | undefined
}

/** A file of a form. */
export interface FilePart {
  readonly name: string
  readonly fileName: string
  /** The form goes on as they are read. */
  readonly bytes: Readable
}

/** What becomes of the parts of a form, in the order in which they come in. */
export interface FormReader {
  /** Most bytes of one field that is text. Default: 16 KiB. */
  readonly maxFieldBytes?: number
  /** Most bytes of one file. Default: no bound of its own. */
  readonly maxFileBytes?: number
  /** Called for each field that is text. What it throws ends the form. */
  field?(name: string, text: string): void
  /** Reads the bytes of a file. Undefined: the form goes on without them. What it throws ends the form. */
  file(part: FilePart): Promise<unknown> | undefined
}

/**
 * Reads a form while it comes in, and gives its fields. It holds those that are text alone. After a failure the request
 * is still there: it can be answered, and whoever answers lets the rest pass.
 * @throws {KisError} the form is malformed or exceeds a bound. Nothing is being read any more
 */
export async function readForm({ headers, stream }: FormStream, reader: FormReader): Promise<Readonly<Record<string, unknown>>> {
  const source = stream!
  const { maxFieldBytes = MAX_FIELD_BYTES, maxFileBytes = Number.POSITIVE_INFINITY } = reader
  const fields = new Map<string, unknown>()
  const files: Readable[] = []
  const taking: Promise<unknown>[] = []
  const end = Promise.withResolvers<void>()
  const parser = openParser(headers, { fieldSize: maxFieldBytes, fileSize: maxFileBytes })
  const add = (name: string, value: unknown) => {
    if (fields.has(name)) throw new KisError('invalid_request', `\`${name}\` was sent more than once.`, { param: name })
    fields.set(name, value)
  }
  let hasFailed = false
  /** What comes after a failure is not looked at, though some of it has been read. */
  const attempt = (work: () => void) => {
    try {
      if (!hasFailed) work()
    } catch (error) {
      hasFailed = true
      end.reject(error)
    }
  }
  parser.on('field', (name, text, isNameCut, isTextCut) =>
    attempt(() => {
      if (isNameCut || isTextCut)
        throw new KisError('string_above_max_length', `A field of the form has at most ${sizeText(maxFieldBytes)}.`, { param: name })
      add(name, text)
      reader.field?.(name, text)
    }),
  )
  parser.on('file', (name, bytes, fileName) => {
    // `end` tells of its errors.
    bytes.on('error', () => undefined)
    bytes.once('limit', () => {
      const message = `\`${name}\` has more than ${sizeText(maxFileBytes)}, the most of one request.`
      end.reject(new KisError('payload_too_large', message, { param: name }))
    })
    let taken: Promise<unknown> | undefined
    attempt(() => {
      add(name, FILE)
      taken = reader.file({ name, fileName: readFileName(fileName), bytes })
    })
    if (!taken) return bytes.resume()
    taken.catch(end.reject)
    files.push(bytes)
    taking.push(taken)
    return undefined
  })
  parser.once('partsLimit', () => end.reject(new KisError('invalid_request', `The form has more than ${MAX_PARTS} parts.`)))
  parser.once('finish', end.resolve)
  parser.on('error', (cause: unknown) => end.reject(malformed(cause)))
  source.once('error', (error) => end.reject(asLeft(error)))
  source.pipe(parser)
  try {
    await end.promise
    await Promise.all(taking)
    return Object.fromEntries(fields)
  } catch (error) {
    hasFailed = true
    source.unpipe(parser)
    source.resume()
    for (const file of files) file.destroy(error as Error)
    await Promise.allSettled(taking)
    throw error
  }
}

/** The one file of a form: its name in the form, and what becomes of its bytes. */
export interface FileOfForm<Taken> {
  readonly param: string
  /** Most bytes; default: no bound of its own. */
  readonly maxBytes?: number
  /** Reads the bytes. The form goes on as they are read. */
  take(fileName: string, bytes: Readable): Promise<Taken>
}

/**
 * Reads a form with one file, as `readForm` does. `taken` is undefined if the form has no such file.
 * @throws {KisError} as `readForm` does, or the file was not taken
 */
export async function readFormStream<Taken>(
  form: FormStream,
  { param, maxBytes = Number.POSITIVE_INFINITY, take }: FileOfForm<Taken>,
): Promise<{ readonly fields: Readonly<Record<string, unknown>>; readonly taken: Taken | undefined }> {
  let taking: Promise<Taken> | undefined
  const fields = await readForm(form, {
    maxFileBytes: maxBytes,
    file({ name, fileName, bytes }) {
      if (name !== param) return undefined
      taking = take(fileName, bytes)
      return taking
    },
  })
  return { fields, taken: await taking }
}

/**
 * The bytes of a body as they come in. If the reader ends early, the request is still there: it can be answered.
 * @throws {KisError} the client left, or was too slow
 */
export async function* readBytes(stream: Readable): AsyncGenerator<Uint8Array> {
  // A pipe keeps the request flowing, by which the server knows that its client is waited for.
  const bytes = new PassThrough()
  const forget = finished(stream, { writable: false }, (error) => {
    if (error) bytes.destroy(asLeft(error))
  })
  stream.pipe(bytes)
  try {
    yield* bytes
  } finally {
    forget()
    stream.unpipe(bytes)
  }
}

function asLeft(error: unknown): KisError {
  return error instanceof KisError ? error : new KisError('invalid_request', 'The body was cut off.', { cause: error })
}

/** Stands for a file among the fields. */
const FILE = Object.freeze({})

/** @throws {KisError} `invalid_type`: the part is text */
export function requireFileTaken<Taken>(param: string, taken: Taken | undefined): Taken {
  if (taken !== undefined) return taken
  throw new KisError('invalid_type', `\`${param}\` must be a file: a part of the form with a \`filename\`.`, { param })
}

function openParser(headers: IncomingHttpHeaders, limits: { readonly fieldSize: number; readonly fileSize: number }): BusboyInstance {
  try {
    return new Busboy({
      headers: headers as BusboyHeaders,
      // The name is checked, not cut.
      preservePath: true,
      isPartAFile: (_name, _type, fileName) => fileName !== undefined,
      limits: { parts: MAX_PARTS, headerSize: MAX_HEADER_BYTES, ...limits },
    })
  } catch (cause) {
    throw malformed(cause)
  }
}

/** Browsers write three characters of names so (WHATWG HTML, "multipart/form-data encoding algorithm"). */
function readFileName(name: string): string {
  return name.replace(/%0A|%0D|%22/gi, decodeURIComponent)
}

function malformed(cause: unknown): KisError {
  return new KisError('invalid_request', 'The body is not a form: check its parts and the boundary of its content type.', { cause })
}
