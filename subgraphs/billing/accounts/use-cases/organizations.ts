import { listById } from '../../../common/documents/list-by-id.ts'
import { NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection, PageArguments } from '../../../common/link/connection.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { Organization } from '../../use-cases/tables.ts'

const ORGANIZATION_ID = /^org_[0-9a-f]{32}$/

/** The caller's own. @throws {NotFound} */
export async function getOrganization({ collections }: BillingDeps, { organizationId }: Principal): Promise<Organization> {
  const organization = await collections.organizations.findOne({ _id: organizationId })
  if (!organization) throw new NotFound('organization', organizationId)
  return organization
}

/** The caller's own, or for an operator any; null for others. */
export async function findOrganization({ collections }: BillingDeps, principal: Principal, id: string): Promise<Organization | null> {
  return mayRead(principal, id) ? collections.organizations.findOne({ _id: id }) : null
}

/** Every organization, newest first. For operators. */
export async function listOrganizations(
  { collections }: BillingDeps,
  principal: Principal,
  page: PageArguments,
): Promise<Connection<Organization>> {
  requireScope(principal, 'operator')
  return listById(collections.organizations, {}, page, ORGANIZATION_ID)
}
