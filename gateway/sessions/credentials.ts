import { InvalidApiKey } from '../../subgraphs/common/errors.ts'
import { isSessionToken } from '../../subgraphs/common/identity/credentials.ts'

/**
 * Returns the credentials of the caller: the key that it sent, or else its session. Empty: neither. The token of a
 * session is accepted only in the cookie, where the same-origin rules apply; `isService`: the REST adapter has applied
 * them.
 * @throws {InvalidApiKey} the token of a session was sent as a key
 */
export function chooseCredentials(sent: string | undefined, session: string | null, isService: boolean): string {
  if (sent === undefined) return session ?? ''
  if (!isService && isSessionToken(sent.replace(/^bearer\s+/i, ''))) throw new InvalidApiKey()
  return sent
}
