import type { LinkContext } from '../../subgraphs/common/link/link.ts'

type CallContext = Pick<LinkContext, 'requestId' | 'signal'>

/** A session that was just opened. */
export interface NewSession {
  readonly id: string
  /** The value of the browser's cookie. */
  readonly token: string
  readonly expiresAt: Date
}

/** Opens and ends the sessions of browsers. */
export interface SessionStore {
  /**
   * Exchanges the text of a key for a session.
   * @throws {InvalidApiKey} the key is unknown, revoked or expired
   * @throws {OrganizationSuspended}
   */
  open(apiKey: string, userAgent: string | null, context: CallContext): Promise<NewSession>
  /** Ends the session of a token. Idempotent. */
  end(token: string, context: CallContext): Promise<void>
}
