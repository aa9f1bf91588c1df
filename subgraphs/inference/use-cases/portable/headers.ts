import type { SealedTexts } from '../../../common/identity/sealed-text.ts'
import { resealed } from '../agents/agent-secrets.ts'
import { headersSealName } from '../agents/mcp-tools.ts'

/** Sealed texts, with the organization whose places they are sealed for. */
export interface Sealing {
  readonly secrets: SealedTexts
  readonly organizationId: string
}

/** Seals headers that were sealed for one organization for another one. */
interface Resealing {
  readonly from: Sealing
  readonly to: Sealing
  /** Whether headers that cannot be opened are left out: a record that a rotation of the secret could not move. */
  readonly omitsUnopened?: boolean
}

/**
 * Seals the headers of an agent's servers anew. Null: they may not go along, and the servers are then there without
 * them. `left` is called for each server that loses its headers.
 * @throws {Error} as `SealedTexts.open`, unless what cannot be opened is left out
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
