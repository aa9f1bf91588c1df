import { BatchedReads } from '../../../common/documents/batched-reads.ts'
import { listSifted, nameTest, SiftBudget } from '../../../common/documents/lists.ts'
import { hasScope, type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection, PageArguments } from '../../../common/link/connection.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { ApiKey } from '../../use-cases/tables.ts'

/**
 * Returns a key of the caller's organization; null when there is none.
 * @throws {PermissionDenied}
 */
export async function findApiKey({ collections }: BillingDeps, principal: Principal, id: string): Promise<ApiKey | null> {
  const { organizationId } = requireScope(principal, 'admin')
  const key = await collections.apiKeys.findOne({ _id: id })
  return key?.organizationId === organizationId ? key : null
}

interface ApiKeyFilter {
  readonly nameContains?: string | null
  /**
   * True: only keys that are themselves neither revoked nor expired, whatever their ancestors are. False: only the
   * others.
   */
  readonly isActive?: boolean | null
}

/**
 * Lists the keys of an organization that the caller may read, newest first, without the keys of members, which have no
 * secret.
 * @throws {PermissionDenied}
 */
export async function listApiKeys(
  { collections, clock }: BillingDeps,
  principal: Principal,
  organizationId: string,
  { filter, ...page }: PageArguments & { readonly filter?: ApiKeyFilter | null },
  sifting: SiftBudget = new SiftBudget(),
): Promise<Connection<ApiKey>> {
  requireScope(principal, 'admin')
  const isNamed = nameTest(filter?.nameContains)
  const isActive = filter?.isActive ?? null
  const now = clock.now()
  const isUsable = ({ revokedAt, expiresAt }: ApiKey) => revokedAt === null && (expiresAt === null || expiresAt > now)
  const matches = (key: ApiKey) => (isNamed?.(key.name) ?? true) && (isActive === null || isUsable(key) === isActive)
  return listSifted(
    collections.apiKeys,
    {
      filter: { organizationId, memberId: null },
      idPrefix: 'key',
      matches: isNamed || isActive !== null ? matches : null,
      sifting,
      sortBy: null,
    },
    page,
  )
}

/** Reads the keys that the records of a list name, all at once. */
export function keyReads({ collections }: BillingDeps): BatchedReads<ApiKey> {
  return new BatchedReads(async (ids) => {
    const found = await collections.apiKeys.find({ _id: { $in: ids } }, { limit: ids.length })
    return new Map(found.map((key) => [key._id, key]))
  })
}

/** Returns the key that a record names: the caller's own, or any that an admin may read; null for others. */
export async function findNamedKey(keys: BatchedReads<ApiKey>, principal: Principal, id: string): Promise<ApiKey | null> {
  if (!mayNameKey(principal, id)) return null
  const key = await keys.find(id)
  return key && mayRead(principal, key.organizationId) ? key : null
}

/**
 * Returns whether the caller may see the key's id in a record. Callers that may manage keys see every key's id; others
 * see only their own.
 */
export function mayNameKey(principal: Principal, apiKeyId: string): boolean {
  return apiKeyId === principal.apiKeyId || hasScope(principal, 'admin')
}
