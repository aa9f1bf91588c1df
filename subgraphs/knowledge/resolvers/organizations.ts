import { countOfOrganization } from '../use-cases/documents/documents.ts'
import { getQuota, getStored } from '../use-cases/get-quota.ts'
import type { OrganizationResolvers } from './generated.ts'

/** An organization of billing, to which knowledge adds fields. */
export interface Reference {
  readonly id: string
}

export const OrganizationFields: OrganizationResolvers = {
  quota: ({ id }, _args, { deps, ...context }) => getQuota(deps, context, id),
  stored: ({ id }, _args, { deps, ...context }) => getStored(deps, context, id),
  documentCounts: ({ id }, _args, { deps, ...context }) => countOfOrganization(deps, context, id),
  __resolveReference: ({ id }) => ({ id }),
}
