import { MIMEType } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { KisError } from '../../subgraphs/common/errors.ts'

/** Parts of one form. The largest form of any route has about ten. */
const MAX_PARTS = 100
/** Bytes of the headers of one part: a name, a file name, a type. */
const MAX_HEADER_BYTES = 16 * 1024

/** Reads `multipart/form-data` as a whole: fields by name as text, files as `File`, names that end in `[]` as lists. */
export function registerFormParser(app: FastifyInstance): void {
  app.addContentTypeParser('multipart/form-data', { parseAs: 'buffer' }, async (request: unknown, body: unknown) => {
    const { headers } = request as { readonly headers: Readonly<Record<string, string>> }
    const bytes = body as Buffer<ArrayBuffer>
    const contentType = headers['content-type']!
    checkParts(bytes, contentType)
    // Node's own parser needs the whole body, up to the body limit of the route.
    const form = await new Response(bytes, { headers: { 'content-type': contentType } }).formData().catch((cause) => {
      throw new KisError('invalid_request', 'The body is not a form: check its parts and the boundary of its content type.', { cause })
    })
    const fields = new Map<string, unknown>()
    for (const name of new Set(form.keys())) {
      const values = form.getAll(name)
      if (!name.endsWith('[]') && values.length > 1)
        throw new KisError('invalid_request', `\`${name}\` was sent more than once.`, { param: name })
      fields.set(name, name.endsWith('[]') ? values : values[0])
    }
    return Object.fromEntries(fields)
  })
}

/**
 * Refuses forms on which the parser would be slow: it takes seconds for a body of nothing but parts.
 * @throws {KisError} `invalid_request`: the form has too many parts, or headers that are too long
 */
function checkParts(bytes: Buffer, contentType: string): void {
  const delimiter = `\r\n--${readBoundary(contentType)}`
  let parts = 0
  // The first delimiter is at the very start, without a line break before it.
  for (let at = 0; at >= 0; at = bytes.indexOf(delimiter, at + 1)) {
    const end = bytes.indexOf('\r\n\r\n', at)
    if (++parts > MAX_PARTS + 1) throw new KisError('invalid_request', `The form has more than ${MAX_PARTS} parts.`)
    if ((end < 0 ? bytes.length : end) - at > MAX_HEADER_BYTES)
      throw new KisError('invalid_request', 'The form has a part whose headers are too long.')
  }
}

/**
 * Reads the boundary by the WHATWG's rules for MIME types, as the parser does: both must look for the same delimiter.
 */
function readBoundary(contentType: string): string {
  try {
    return new MIMEType(contentType).params.get('boundary') ?? ''
  } catch (cause) {
    throw new KisError('invalid_request', 'The content type of the form is malformed.', { cause })
  }
}

/** Refuses a request that is not a form before its body is read. */
export function requireForm(request: Headed): void {
  if (!isForm(request)) throw new KisError('invalid_request', 'Send the body as a form, with `content-type: multipart/form-data`.')
}

interface Headed {
  readonly headers: { readonly 'content-type'?: string | undefined }
}

export function isForm({ headers }: Headed): boolean {
  return headers['content-type']?.toLowerCase().startsWith('multipart/form-data') ?? false
}

export function isJson({ headers }: Headed): boolean {
  return /^application\/json *(;|$)/i.test(headers['content-type'] ?? '')
}

/**
 * Returns a file of a form.
 * @throws {KisError} `invalid_type`: the field is text
 */
export function requireFilePart(value: unknown, param: string): File {
  if (value instanceof File) return value
  throw new KisError('invalid_type', `\`${param}\` must be a file: a part of the form with a \`filename\`.`, { param })
}
