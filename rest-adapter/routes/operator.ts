import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/organizations.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { actionRoute, listRoute } from '../http/resource-routes.ts'
import { created, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { lowerCase, toEnum, unixSeconds, unixSecondsOrNull } from '../http/values.ts'
import { LEDGER_ENTRY, toLedgerEntry } from './money/wallet.ts'
import { LIMITS, type LimitsData, ORGANIZATION, type OrganizationData, toLimits, toOrganization } from './organization.ts'

const MANAGED = `${ORGANIZATION} limits { ${LIMITS} } suspendedAt suspensionReason deletedAt` as const
const CHANGE = `id kind plan limits { ${LIMITS} } reason apiKeyId at` as const

const CREATE = gatewayOperation(`mutation CreateOrganization($input: CreateOrganizationInput!) {
  createOrganization(input: $input) { key organization { ${MANAGED} } } }`)
const LIST = gatewayOperation(`query Organizations($first: Int!, $after: String, $filter: OrganizationFilter) {
  organizations(first: $first, after: $after, filter: $filter) { edges { node { ${MANAGED} } } pageInfo { hasNextPage endCursor } } }`)
const GET = gatewayOperation(`query OrganizationById($id: ID!) { organization(id: $id) { ${MANAGED}
  stored { storageBytes vectors } ocrQuota { used limit } wallet { balance held available } } }`)
const CHANGES = gatewayOperation(`query OrganizationChanges($id: ID!, $first: Int!, $after: String) {
  organization(id: $id) { changes(first: $first, after: $after) { edges { node { ${CHANGE} } } ${PAGE_INFO} } } }`)
const SUSPEND = gatewayOperation(`mutation SuspendOrganization($input: SuspendOrganizationInput!) {
  suspendOrganization(input: $input) { organization { ${MANAGED} } } }`)
const RESUME = gatewayOperation(`mutation ResumeOrganization($id: ID!) { resumeOrganization(id: $id) { organization { ${MANAGED} } } }`)
const DELETE = gatewayOperation(`mutation DeleteOrganization($id: ID!) { deleteOrganization(id: $id) { organization { ${MANAGED} } } }`)
const ASSIGN_PLAN = gatewayOperation(
  `mutation AssignPlan($input: AssignPlanInput!) { assignPlan(input: $input) { organization { ${MANAGED} } } }`,
)
const TOP_UP = gatewayOperation(
  `mutation TopUpWallet($input: TopUpWalletInput!) { topUpWallet(input: $input) { entry { ${LEDGER_ENTRY} } } }`,
)
const ADJUST = gatewayOperation(
  `mutation AdjustWallet($input: AdjustWalletInput!) { adjustWallet(input: $input) { entry { ${LEDGER_ENTRY} } } }`,
)

const NAMES = { organizationId: 'id', amount: 'amount_usd' }
const LIST_NAMES = { ...PAGE_NAMES, 'filter.name': 'name' }

interface ManagedData extends OrganizationData {
  readonly limits: LimitsData
  readonly suspendedAt: string | null
  readonly suspensionReason: string | null
  readonly deletedAt: string | null
}

function toManaged(data: ManagedData): operations.ManagedOrganization {
  return {
    ...toOrganization(data),
    limits: toLimits(data.limits),
    suspended_at: unixSecondsOrNull(data.suspendedAt),
    suspension_reason: data.suspensionReason,
    deleted_at: unixSecondsOrNull(data.deletedAt),
  }
}

function toChange(data: Selected<'OrganizationChange', typeof CHANGE>): operations.OrganizationChangeEntry {
  return {
    id: data.id,
    object: 'organization.change',
    created_at: unixSeconds(data.at),
    kind: lowerCase(data.kind),
    plan: data.plan,
    limits: toLimits(data.limits),
    reason: data.reason,
    key_id: data.apiKeyId,
  }
}

/** Converts the limits. An absent limit stays that of the plan. */
function readLimits(limits: JsonObject) {
  return {
    storageBytes: limits.storage_bytes,
    vectors: limits.vectors,
    maxFileBytes: limits.max_file_bytes,
    requestsPerMinute: limits.requests_per_minute,
    tokensPerMinute: limits.tokens_per_minute,
    concurrency: limits.concurrency,
    ocrPages: limits.ocr_pages,
  }
}

const LIMIT_NAMES = {
  ...NAMES,
  'limits.storageBytes': 'limits.storage_bytes',
  'limits.maxFileBytes': 'limits.max_file_bytes',
  'limits.requestsPerMinute': 'limits.requests_per_minute',
  'limits.tokensPerMinute': 'limits.tokens_per_minute',
  'limits.ocrPages': 'limits.ocr_pages',
}

export const operatorRoutes: readonly Route[] = [
  route({
    operation: operations.createOrganization,
    async handle({ execute, body }) {
      const policy = body.residency_policy as string | undefined
      const input = { name: body.name, plan: body.plan, residencyPolicy: policy && toEnum(policy) }
      const data = await execute(CREATE, { input })
      const { organization, key } = data.createOrganization
      return created({ ...toManaged(organization), key })
    },
  }),
  route({
    operation: operations.listOrganizations,
    async handle({ execute, query }) {
      const status = query.status as string | undefined
      const filter = { name: query.name, status: status && toEnum(status), plan: query.plan }
      const { organizations } = await execute(LIST, { ...pageVariables(query), filter }, LIST_NAMES)
      const { endCursor } = organizations.pageInfo
      const list = toList(organizations, toManaged, readId)
      // A filtered page may end after organizations that it does not contain.
      return ok({ ...list, last_id: endCursor === null ? null : Buffer.from(endCursor, 'base64url').toString() })
    },
  }),
  route({
    operation: operations.getOrganizationById,
    async handle({ execute, params }) {
      const { stored, wallet, ocrQuota, ...organization } = (await execute(GET, { id: params.id })).organization
      const { plan } = organization
      return ok({
        ...toManaged(organization),
        quota: stored && {
          storage_bytes: { used: stored.storageBytes, limit: plan.storageBytes },
          vectors: { used: stored.vectors, limit: plan.vectors },
          ocr_pages: ocrQuota,
        },
        wallet: { balance_usd: wallet.balance, held_usd: wallet.held, available_usd: wallet.available },
      })
    },
  }),
  route({
    operation: operations.assignPlan,
    async handle({ execute, params, body }) {
      const limits = body.limits as JsonObject | undefined
      const input = { organizationId: params.id, plan: body.plan, limits: limits && readLimits(limits) }
      const data = await execute(ASSIGN_PLAN, { input }, LIMIT_NAMES)
      return ok(toManaged(data.assignPlan.organization))
    },
  }),
  actionRoute(operations.deleteOrganization, DELETE, (data) => toManaged(data.deleteOrganization.organization), NAMES),
  route({
    operation: operations.suspendOrganization,
    async handle({ execute, params, body }) {
      const input = { organizationId: params.id, reason: body.reason }
      const data = await execute(SUSPEND, { input }, NAMES)
      return ok(toManaged(data.suspendOrganization.organization))
    },
  }),
  actionRoute(operations.resumeOrganization, RESUME, (data) => toManaged(data.resumeOrganization.organization), NAMES),
  listRoute(operations.listOrganizationChanges, CHANGES, (data) => data.organization.changes, toChange),
  route({
    operation: operations.topUpWallet,
    async handle({ execute, params, body }) {
      const input = { organizationId: params.id, amount: body.amount_usd, reference: body.reference }
      const data = await execute(TOP_UP, { input }, NAMES)
      return created(toLedgerEntry(data.topUpWallet.entry))
    },
  }),
  route({
    operation: operations.adjustWallet,
    async handle({ execute, params, body }) {
      const input = { organizationId: params.id, amount: body.amount_usd, reference: body.reference }
      const data = await execute(ADJUST, { input }, NAMES)
      return created(toLedgerEntry(data.adjustWallet.entry))
    },
  }),
]
