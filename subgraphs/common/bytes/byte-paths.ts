import { randomUUID } from 'node:crypto'
import { KisError } from '../errors.ts'
import type { SubgraphName } from '../link/subgraph.ts'
import type { Clock } from '../process/clock.ts'

/** Where the gateway, and each subgraph that stores bytes, serves them. */
export const BYTES_PATH = '/bytes'
/** A client follows a path at once. A revoked key gets no new one. */
const LIFETIME_S = 60
const AUDIENCE = 'bytes'
/** Characters of a token. One for a file has about 250. */
const MAX_TOKEN_LENGTH = 1_024

/** What can be read at a path, and which subgraph stores it. */
const OWNERS = { file: 'knowledge', response: 'inference' } as const satisfies Record<string, SubgraphName>
type ByteKind = keyof typeof OWNERS

/** Bytes that one subgraph stores for one organization. */
interface ByteReference {
  readonly kind: ByteKind
  readonly organizationId: string
  /** The id of the file, or of the call that a repeat gets the response of. */
  readonly key: string
}

/** `id`: of the path, however it is written. No two have the same. */
type VerifiedReference = ByteReference & { readonly id: string }

export interface SignedPath {
  readonly path: string
  readonly expiresAt: Date
}

/** Makes paths at which stored bytes can be read for a minute by whoever has the path, and reads them. */
export interface BytePaths {
  sign(reference: ByteReference): Promise<SignedPath>
  /** @throws {KisError} `permission_denied`: the path is forged, or has expired */
  verify(path: string): Promise<VerifiedReference>
}

export function ownerOf({ kind }: ByteReference): (typeof OWNERS)[ByteKind] {
  return OWNERS[kind]
}

/** Loaded by the first download. */
const loadJose = () => import('jose')

/** Signed tokens (JWT, HS256): any replica serves what any other has signed. */
export function bytePaths(clock: Clock, secret: Uint8Array): BytePaths {
  return {
    async sign({ kind, organizationId, key }) {
      const { SignJWT } = await loadJose()
      const expires = Math.floor(clock.now().getTime() / 1_000) + LIFETIME_S
      const token = await new SignJWT({ kind, organizationId, key })
        .setProtectedHeader({ alg: 'HS256' })
        .setAudience(AUDIENCE)
        .setJti(randomUUID())
        .setExpirationTime(expires)
        .sign(secret)
      return { path: `${BYTES_PATH}?${new URLSearchParams({ token })}`, expiresAt: new Date(expires * 1_000) }
    },

    async verify(path) {
      const [address, query = ''] = path.split('?', 2)
      const token = new URLSearchParams(query).get('token') ?? ''
      if (address === BYTES_PATH && token.length <= MAX_TOKEN_LENGTH) {
        const { jwtVerify } = await loadJose()
        const options = { audience: AUDIENCE, algorithms: ['HS256'], requiredClaims: ['exp', 'jti'], currentDate: clock.now() }
        const checked = await jwtVerify<ByteReference>(token, secret, options).catch(() => null)
        if (checked) {
          const { kind, organizationId, key, jti } = checked.payload
          return { kind, organizationId, key, id: jti! }
        }
      }
      throw new KisError('permission_denied', 'This download path is not valid, or has expired. Ask for a new one.')
    },
  }
}
