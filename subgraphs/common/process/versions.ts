import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The versions of this build, for `/healthz` and `kis version`. */
interface Versions {
  /** The service's version, as in `package.json` and the header `x-kis-version`. */
  readonly version: string
  /** The REST API's version: the first part of its paths. */
  readonly api: string
  /**
   * The first 12 hexadecimal digits of the SHA-256 of the supergraph: processes with the same value have the same
   * schema.
   */
  readonly schema: string
}

export const VERSIONS: Versions = {
  version: JSON.parse(text('package.json')).version,
  api: 'v1',
  schema: createHash('sha256').update(text('schema/supergraph.graphql')).digest('hex').slice(0, 12),
}

function text(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
}
