import { gatewayOperation } from '../../schema/operations.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { created, ok, type Route } from '../http/route.ts'
import { toEnum } from '../http/values.ts'
import { ORGANIZATION, toOrganization } from './organization.ts'
import { LEDGER_ENTRY, toLedgerEntry } from './wallet.ts'

const CREATE = gatewayOperation(`mutation CreateOrganization($input: CreateOrganizationInput!) {
  createOrganization(input: $input) { key organization { ${ORGANIZATION} } } }`)
const LIST = gatewayOperation(`query Organizations($first: Int!, $after: String) {
  organizations(first: $first, after: $after) { edges { node { ${ORGANIZATION} } } ${PAGE_INFO} } }`)
const ASSIGN_PLAN = gatewayOperation(
  `mutation AssignPlan($input: AssignPlanInput!) { assignPlan(input: $input) { organization { ${ORGANIZATION} } } }`,
)
const TOP_UP = gatewayOperation(
  `mutation TopUpWallet($input: TopUpWalletInput!) { topUpWallet(input: $input) { entry { ${LEDGER_ENTRY} } } }`,
)
const ADJUST = gatewayOperation(
  `mutation AdjustWallet($input: AdjustWalletInput!) { adjustWallet(input: $input) { entry { ${LEDGER_ENTRY} } } }`,
)

const NAMES = { organizationId: 'id', amount: 'amount_usd' }

export const operatorRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/organizations',
    async handle({ ask, body }) {
      const policy = body.residency_policy as string | undefined
      const input = { name: body.name, plan: body.plan, residencyPolicy: policy && toEnum(policy) }
      const data = await ask(CREATE, { input })
      const { organization, key } = data.createOrganization
      return created({ ...toOrganization(organization), key })
    },
  },
  {
    method: 'GET',
    path: '/v1/organizations',
    async handle({ ask, query }) {
      const data = await ask(LIST, pageVariables(query), PAGE_NAMES)
      return ok(toList(data.organizations, toOrganization, readId))
    },
  },
  {
    method: 'PATCH',
    path: '/v1/organizations/{id}',
    async handle({ ask, params, body }) {
      const input = { organizationId: params.id, plan: body.plan }
      const data = await ask(ASSIGN_PLAN, { input }, NAMES)
      return ok(toOrganization(data.assignPlan.organization))
    },
  },
  {
    method: 'POST',
    path: '/v1/organizations/{id}/top-ups',
    async handle({ ask, params, body }) {
      const input = { organizationId: params.id, amount: body.amount_usd, reference: body.reference }
      const data = await ask(TOP_UP, { input }, NAMES)
      return created(toLedgerEntry(data.topUpWallet.entry))
    },
  },
  {
    method: 'POST',
    path: '/v1/organizations/{id}/adjustments',
    async handle({ ask, params, body }) {
      const input = { organizationId: params.id, amount: body.amount_usd, reference: body.reference }
      const data = await ask(ADJUST, { input }, NAMES)
      return created(toLedgerEntry(data.adjustWallet.entry))
    },
  },
]
