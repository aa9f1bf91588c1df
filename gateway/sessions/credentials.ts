import { InvalidApiKey } from '../../subgraphs/common/errors.ts'
import { isSessionToken } from '../../subgraphs/common/identity/credentials.ts'

/**
 * What the caller is known by: the key that it sent, or else its session. Empty: neither. The token of a session counts
 * in the cookie alone, where the rules of the same origin apply; `isService`: the rest-adapter has applied them.
 * @throws {InvalidApiKey} the token of a session was sent as a key
 */
export function chooseCredentials(sent: string | undefined, session: string | null, isService: boolean): string {
  if (sent === undefined) return session ?? ''
  if (!isService && isSessionToken(sent.replace(/^bearer\s+/i, ''))) throw new InvalidApiKey()
  return sent
}
