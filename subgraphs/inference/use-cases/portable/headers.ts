import type { SealedTexts } from '../../../common/identity/sealed-text.ts'
import { resealed } from '../agents/agent-secrets.ts'
import { headersSealName } from '../agents/mcp-tools.ts'

/** The seal, and the organization for which it seals texts. */
export interface Sealing {
  readonly secrets: SealedTexts
  readonly organizationId: string
}

/** Seals headers of one organization for another one. */
interface Resealing {
  readonly from: Sealing
  readonly to: Sealing
  /**
   * Whether headers that cannot be opened are left out, such as those that a rotation of the secret could not reseal.
   */
  readonly omitsUnopened?: boolean
}

/**
 * Seals the headers of an agent's servers anew. Null: the servers are transferred without headers. `left` is called for
 * each server that loses its headers.
 * @throws {Error} as `SealedTexts.open`, unless headers that cannot be opened are left out
 */
export function resealHeaders(definition: string, resealing: Resealing | null, left: () => void): string {
  return resealed(definition, (sealed, url) => {
    const headers = resealing && reseal(sealed, url, resealing)
    if (headers === null) left()
    return headers
  })
}

function reseal(sealed: string, url: string, { from, to, omitsUnopened = false }: Resealing): string | null {
  let headers: string
  try {
    headers = from.secrets.open(sealed, headersSealName(from.organizationId, url))
  } catch (error) {
    if (omitsUnopened) return null
    throw error
  }
  return to.secrets.seal(headers, headersSealName(to.organizationId, url))
}
