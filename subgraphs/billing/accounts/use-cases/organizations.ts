import { listById } from '../../../common/documents/lists.ts'
import { NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { type Connection, encodeCursor, type Page, type PageArguments, readPage, toConnection } from '../../../common/link/connection.ts'
import { checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { Organization, OrganizationChange } from '../../use-cases/tables.ts'
import { storeLastChange } from './change-organization.ts'

const ORGANIZATION_ID = /^org_[0-9a-f]{32}$/
const CHANGE_ID = /^och_[0-9a-f]{32}$/
/** Organizations that a page with a filter reads: no index has names. 10,000 take SQLite 0.2 s. */
const MAX_READ = 10_000
/** As the port allows. */
const PAGE_READ = 1_000

type OrganizationStatus = 'active' | 'suspended' | 'deleting' | 'deleted'

interface OrganizationFilter {
  readonly name?: string | null
  readonly status?: OrganizationStatus | null
  readonly plan?: string | null
}

/** The caller's own, or for an operator any. @throws {NotFound} */
export async function getOrganization({ collections }: BillingDeps, principal: Principal, id: string): Promise<Organization> {
  const organization = mayRead(principal, id) ? await collections.organizations.findOne({ _id: id }) : null
  if (!organization) throw new NotFound('organization', id)
  return organization
}

/** The caller's own, or for an operator any; null for others. */
export async function findOrganization({ collections }: BillingDeps, principal: Principal, id: string): Promise<Organization | null> {
  return mayRead(principal, id) ? collections.organizations.findOne({ _id: id }) : null
}

/** The organizations that match, newest first. A page ends early where it would read too many. For operators. */
export async function listOrganizations(
  { collections }: BillingDeps,
  principal: Principal,
  args: PageArguments,
  filter: OrganizationFilter,
): Promise<Connection<Organization>> {
  requireScope(principal, 'operator')
  const page = readPage(args, ORGANIZATION_ID)
  const matches = toMatch(filter)
  if (!matches) return listById(collections.organizations, {}, args, ORGANIZATION_ID)
  const { items, readTo } = await readMatching(collections, matches, page, page.limit)
  const count = async (limit: number) => {
    const all = await readMatching(collections, matches, { from: null, isBackward: false }, limit)
    return all.readTo === null ? all.items.length : limit
  }
  return toConnection(items, page, idOf, count, readTo && encodeCursor(readTo))
}

/** Reads in one direction until enough match. `readTo`: the last organization read, if too many were read before that. */
async function readMatching(
  { organizations }: BillingDeps['collections'],
  matches: (organization: Organization) => boolean,
  { from, isBackward }: Pick<Page, 'from' | 'isBackward'>,
  enough: number,
): Promise<{ readonly items: readonly Organization[]; readonly readTo: string | null }> {
  const items: Organization[] = []
  let after = from
  for (let read = 0; read < MAX_READ; read += PAGE_READ) {
    const rest = after === null ? {} : { _id: isBackward ? { $gt: after } : { $lt: after } }
    const some = await organizations.find(rest, { sort: { _id: isBackward ? 1 : -1 }, limit: PAGE_READ })
    items.push(...some.filter(matches))
    if (items.length >= enough || some.length < PAGE_READ) return { items, readTo: null }
    after = some.at(-1)!._id
  }
  return { items, readTo: after }
}

const idOf = ({ _id }: Organization) => _id

/** Null: every organization matches. */
function toMatch({ name, status, plan }: OrganizationFilter): ((organization: Organization) => boolean) | null {
  if (name == null && status == null && plan == null) return null
  const text = name == null ? null : fold(checkName(name, 'filter.name'))
  return (organization) =>
    (text === null || fold(organization.name).includes(text)) &&
    (status == null || statusOf(organization) === status) &&
    (plan == null || organization.plan === plan)
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

export function statusOf({ suspendedAt, deletedAt, erasingSince }: Organization): OrganizationStatus {
  if (deletedAt) return erasingSince ? 'deleting' : 'deleted'
  return suspendedAt ? 'suspended' : 'active'
}

/** What operators changed, newest first. For operators. */
export async function listChanges(
  deps: BillingDeps,
  principal: Principal,
  organization: Organization,
  page: PageArguments,
): Promise<Connection<OrganizationChange>> {
  requireScope(principal, 'operator')
  await storeLastChange(deps, organization)
  return listById(deps.collections.organizationChanges, { organizationId: organization._id }, page, CHANGE_ID)
}
