import { type Connection, connectionOf, type PageArguments, pageOf } from '../../../common/link/connection.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey, Organization } from '../../use-cases/tables.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import { USAGE_POSITION, type UsageRecord } from '../domain/usage.ts'

const ORGANIZATION_ID = /^org_[0-9a-f]{32}$/
const API_KEY_ID = /^key_[0-9a-f]{32}$/
const SEQUENCE = /^[1-9]\d{0,14}$/

/** Every organization, newest first. */
export async function listOrganizations({ collections }: BillingDeps, args: PageArguments): Promise<Connection<Organization>> {
  const page = pageOf(args, ORGANIZATION_ID)
  const filter = page.after === null ? {} : { _id: { $lt: page.after } }
  const items = await collections.organizations.find(filter, { sort: { _id: -1 }, limit: page.limit })
  return connectionOf(items, page, ({ _id }) => _id)
}

/** An organization's keys, newest first. */
export async function listApiKeys({ collections }: BillingDeps, organizationId: string, args: PageArguments): Promise<Connection<ApiKey>> {
  const page = pageOf(args, API_KEY_ID)
  const filter = { organizationId, ...(page.after !== null && { _id: { $lt: page.after } }) }
  const items = await collections.apiKeys.find(filter, { sort: { _id: -1 }, limit: page.limit })
  return connectionOf(items, page, ({ _id }) => _id)
}

/** An organization's ledger, newest first, with everything posted before the call. */
export async function listEntries(deps: BillingDeps, organizationId: string, args: PageArguments): Promise<Connection<LedgerEntry>> {
  const page = pageOf(args, SEQUENCE)
  await deps.pump.drain(organizationId)
  const filter = { organizationId, ...(page.after !== null && { sequence: { $lt: Number(page.after) } }) }
  const items = await deps.collections.entries.find(filter, { sort: { sequence: -1 }, limit: page.limit })
  return connectionOf(items, page, ({ sequence }) => String(sequence))
}

export interface UsageFilter {
  readonly modelId?: string | null
  readonly apiKeyId?: string | null
  readonly since?: Date | null
  readonly until?: Date | null
}

/** An organization's usage records, newest first, with every call settled before this one. */
export async function listUsage(
  deps: BillingDeps,
  organizationId: string,
  args: PageArguments,
  { modelId, apiKeyId, since, until }: UsageFilter,
): Promise<Connection<UsageRecord>> {
  const page = pageOf(args, USAGE_POSITION)
  await deps.pump.drain(organizationId)
  // A bare instant sorts before every position of its millisecond.
  const before = [page.after, until?.toISOString()].filter((bound) => typeof bound === 'string').sort()[0]
  const range = { ...(before !== undefined && { $lt: before }), ...(since && { $gte: since.toISOString() }) }
  const filter = {
    organizationId,
    ...(apiKeyId && { apiKeyId }),
    ...(modelId && { modelId }),
    ...(Object.keys(range).length > 0 && { position: range }),
  }
  const items = await deps.collections.usage.find(filter, { sort: { position: -1 }, limit: page.limit })
  return connectionOf(items, page, ({ position }) => position)
}
