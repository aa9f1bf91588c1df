import { randomUUID } from 'node:crypto'
import { KisError } from '../errors.ts'
import type { SubgraphName } from '../link/subgraph.ts'
import type { Clock } from '../process/clock.ts'

/** The path at which the gateway, and each subgraph that stores bytes, serves them. */
export const BYTES_PATH = '/bytes'
/** Lifetime of a path in seconds. A client uses a path at once; a revoked key gets no new one. */
const LIFETIME_S = 60
const AUDIENCE = 'bytes'
/** Characters of a token. A token for a file has about 250. */
const MAX_TOKEN_LENGTH = 1_024

/** The kinds of bytes that a path can serve, and the subgraph that stores each. */
const OWNERS = { file: 'knowledge', response: 'inference' } as const satisfies Record<string, SubgraphName>
type ByteKind = keyof typeof OWNERS

/** A reference to bytes that one subgraph stores for one organization. */
interface ByteReference {
  readonly kind: ByteKind
  readonly organizationId: string
  /** The id of the file, or of the call whose response a repeated call gets. */
  readonly key: string
}

/** `id`: identifies the path, however it is written. IDs are unique per path. */
type VerifiedReference = ByteReference & { readonly id: string }

/** A path with its signature, valid until `expiresAt`. */
export interface SignedPath {
  readonly path: string
  readonly expiresAt: Date
}

/** Creates paths at which stored bytes can be read for one minute by whoever has the path, and verifies these paths. */
export interface BytePaths {
  sign(reference: ByteReference): Promise<SignedPath>
  /** @throws {KisError} `permission_denied`: the path is forged, or has expired */
  verify(path: string): Promise<VerifiedReference>
}

/** Returns the subgraph that stores the bytes. */
export function ownerOf({ kind }: ByteReference): (typeof OWNERS)[ByteKind] {
  return OWNERS[kind]
}

/** The first download loads the library. */
const loadJose = () => import('jose')

/** Paths are signed tokens (JWT, HS256), so any replica serves what any other has signed. */
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
      throw new KisError('permission_denied', 'This download path is not valid, or has expired. Request a new one.')
    },
  }
}
