import type { IncomingHttpHeaders } from 'node:http'
import { KisError } from '../../errors.ts'

/**
 * Bodies are not inflated: one of 20 MB could become gigabytes. As they are, they would be taken for broken JSON or for
 * files of an unknown format.
 * @throws {KisError} `unsupported_value`: the body is compressed
 */
export function requirePlainBody({ 'content-encoding': encoding }: IncomingHttpHeaders): void {
  if (['', 'identity'].includes(encoding?.trim().toLowerCase() ?? '')) return
  throw new KisError('unsupported_value', 'The service does not take compressed bodies. Send it as it is, without `content-encoding`.', {
    param: 'content-encoding',
  })
}
