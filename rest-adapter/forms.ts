import type { FastifyInstance } from 'fastify'
import { KisError } from '../subgraphs/common/errors.ts'

/** Parts of one form; the largest that any route takes has some ten. */
const MAX_PARTS = 100

/** Reads `multipart/form-data` whole: fields by name as texts, files as `File`, names that end in `[]` as lists. */
export function registerFormParser(app: FastifyInstance): void {
  app.addContentTypeParser('multipart/form-data', { parseAs: 'buffer' }, async (request: unknown, body: unknown) => {
    const { headers } = request as { readonly headers: Readonly<Record<string, string>> }
    const bytes = body as Buffer<ArrayBuffer>
    if (partsIn(bytes) > MAX_PARTS) throw new KisError('invalid_request', `The form has more than ${MAX_PARTS} parts.`)
    // The platform's own parser; it asks for the whole body, which the route's size limit bounds.
    const form = await new Response(bytes, { headers: { 'content-type': headers['content-type']! } }).formData().catch((cause) => {
      throw new KisError('invalid_request', 'The body is not a form: check its parts and the boundary of its content type.', { cause })
    })
    const fields = new Map<string, unknown>()
    for (const name of new Set(form.keys())) {
      const values = form.getAll(name)
      if (!name.endsWith('[]') && values.length > 1)
        throw new KisError('invalid_request', `\`${name}\` is there more than once.`, { param: name })
      fields.set(name, name.endsWith('[]') ? values : values[0])
    }
    return Object.fromEntries(fields)
  })
}

/** Not more than that, without parsing: each part has this header (RFC 7578, section 4.2). */
function partsIn(bytes: Buffer): number {
  let count = 0
  for (const header of ['\nContent-Disposition:', '\ncontent-disposition:'])
    for (let at = bytes.indexOf(header); at >= 0 && count <= MAX_PARTS; at = bytes.indexOf(header, at + header.length)) count++
  return count
}

/** Refuses what is no form before its body is read. */
export function requireForm({ headers }: { readonly headers: { readonly 'content-type'?: string | undefined } }): void {
  if (!headers['content-type']?.toLowerCase().startsWith('multipart/form-data'))
    throw new KisError('invalid_request', 'Send the body as a form, with `content-type: multipart/form-data`.')
}
