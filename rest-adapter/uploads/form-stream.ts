import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { Busboy, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy'
import { KisError } from '../../subgraphs/common/errors.ts'
import { sizeText } from '../../subgraphs/common/sizes.ts'

/** Parts of one form. The largest form of any route has about ten. */
const MAX_PARTS = 100
/** Bytes of the headers of one part: a name, a file name, a type. */
const MAX_HEADER_BYTES = 16 * 1024
/** Bytes of one text field. */
const MAX_FIELD_BYTES = 16 * 1024

interface FormStream {
  readonly headers: IncomingHttpHeaders
  readonly stream: Readable | undefined
}

/** The one file of a form: its name in the form, and the function that stores its bytes. */
interface FileOfForm<Uploaded> {
  readonly param: string
  /** Reads the bytes. The form continues as they are read. */
  upload(fileName: string, bytes: Readable): Promise<Uploaded>
}

/**
 * Reads a form with one file while it comes in. Returns its text fields, which alone are held in memory, and the result
 * of `upload`; undefined: the form has no such file. After a failure the request is still open: the caller can respond
 * and lets the rest of the body pass.
 * @throws {KisError} the form is malformed or exceeds a limit, or `upload` failed. Nothing is being read any more
 */
export async function readFormStream<Uploaded>(
  { headers, stream }: FormStream,
  { param, upload }: FileOfForm<Uploaded>,
): Promise<{ readonly fields: Readonly<Record<string, unknown>>; readonly uploaded: Uploaded | undefined }> {
  const source = stream!
  const fields = new Map<string, unknown>()
  let file: Readable | undefined
  let taking: Promise<Uploaded> | undefined
  const end = Promise.withResolvers<void>()
  const parser = openParser(headers)
  let hasFailed = false
  /** Runs a step unless an earlier one failed: the parser may still emit parts that it has read already. */
  const attempt = (work: () => void) => {
    try {
      if (!hasFailed) work()
    } catch (error) {
      hasFailed = true
      end.reject(error)
    }
  }
  const add = (name: string, value: unknown) => {
    if (fields.has(name)) throw new KisError('invalid_request', `\`${name}\` was sent more than once.`, { param: name })
    fields.set(name, value)
  }
  parser.on('field', (name, text, isNameCut, isTextCut) =>
    attempt(() => {
      if (isNameCut || isTextCut)
        throw new KisError('string_above_max_length', `A field of the form has at most ${sizeText(MAX_FIELD_BYTES)}.`, { param: name })
      add(name, text)
    }),
  )
  parser.on('file', (name, bytes, fileName) => {
    // The parser's `end` reports errors of these bytes.
    bytes.on('error', () => undefined)
    attempt(() => {
      add(name, FILE)
      if (name !== param) return
      file = bytes
      taking = upload(readFileName(fileName), bytes)
      taking.catch(end.reject)
    })
    if (file !== bytes) bytes.resume()
  })
  parser.once('partsLimit', () => end.reject(new KisError('invalid_request', `The form has more than ${MAX_PARTS} parts.`)))
  parser.once('finish', end.resolve)
  parser.on('error', (cause: unknown) => end.reject(malformed(cause)))
  source.once('error', (error) => end.reject(asLeft(error)))
  source.pipe(parser)
  try {
    await end.promise
    return { fields: Object.fromEntries(fields), uploaded: await taking }
  } catch (error) {
    hasFailed = true
    source.unpipe(parser)
    source.resume()
    file?.destroy(error as Error)
    await Promise.allSettled([taking])
    throw error
  }
}

function asLeft(error: unknown): KisError {
  return error instanceof KisError ? error : new KisError('invalid_request', 'The body was cut off.', { cause: error })
}

/** Stands for a file among the fields. */
const FILE = Object.freeze({})

/** @throws {KisError} `invalid_type`: the part is text */
export function requireUploaded<Uploaded>(param: string, uploaded: Uploaded | undefined): Uploaded {
  if (uploaded !== undefined) return uploaded
  throw new KisError('invalid_type', `\`${param}\` must be a file: a part of the form with a \`filename\`.`, { param })
}

function openParser(headers: IncomingHttpHeaders): BusboyInstance {
  try {
    return new Busboy({
      headers: headers as BusboyHeaders,
      // The whole name is kept, because a check of the name follows.
      preservePath: true,
      isPartAFile: (_name, _type, fileName) => fileName !== undefined,
      limits: { parts: MAX_PARTS, headerSize: MAX_HEADER_BYTES, fieldSize: MAX_FIELD_BYTES },
    })
  } catch (cause) {
    throw malformed(cause)
  }
}

/**
 * Restores the three characters of file names that browsers escape (WHATWG HTML, "multipart/form-data encoding
 * algorithm").
 */
function readFileName(name: string): string {
  return name.replace(/%0A|%0D|%22/gi, decodeURIComponent)
}

function malformed(cause: unknown): KisError {
  return new KisError('invalid_request', 'The body is not a form: check its parts and the boundary of its content type.', { cause })
}
