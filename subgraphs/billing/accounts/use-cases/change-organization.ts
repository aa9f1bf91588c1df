import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { checkInteger, checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Organization, OrganizationChange, OrganizationLimits } from '../../use-cases/tables.ts'
import { eraseWebhooks } from '../../webhooks/use-cases/erase-webhooks.ts'
import { checkPlan } from './create-organization.ts'
import { noteOwn } from './erasures/erase-organization.ts'
import { putInForce } from './rules-in-force.ts'

/** Attempts of a change while other callers change the same organization. */
const MAX_TRIES = 10

interface AssignPlanInput {
  readonly organizationId: string
  readonly plan?: string | null
  readonly limits?: { readonly [Limit in keyof OrganizationLimits]?: number | null } | null
}

/**
 * Assigns another plan to any organization, or limits of its own. Resolves once both are in force. For operators.
 * @throws {KisError} `missing_required_parameter`: the plan and the limits are absent
 * @throws {KisError} `unsupported_value`: there is no such plan; `integer_below_min_value` or `integer_above_max_value`
 */
export async function assignPlan(deps: BillingDeps, principal: Principal, input: AssignPlanInput): Promise<Organization> {
  requireScope(principal, 'operator')
  const plan = input.plan == null ? undefined : checkPlan(deps, input.plan)
  const limits = input.limits == null ? undefined : checkLimits(input.limits)
  if (plan === undefined && limits === undefined)
    throw new KisError('missing_required_parameter', 'Send a `plan`, or `limits`, or both.', { param: 'plan' })
  const kind = limits === undefined ? 'plan' : plan === undefined ? 'limits' : 'plan_and_limits'
  return change(deps, principal, input.organizationId, () => ({ kind, set: { ...(plan && { plan }), ...(limits && { limits }) } }))
}

/** Limits of calls, at least 1. To allow no calls, operators suspend the organization. */
const AT_LEAST_ONE: readonly string[] = ['requestsPerMinute', 'tokensPerMinute', 'concurrency'] satisfies (keyof OrganizationLimits)[]

function checkLimits(limits: NonNullable<AssignPlanInput['limits']>): OrganizationLimits {
  const provided = Object.entries(limits).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
  return Object.fromEntries(
    provided.map(([name, limit]) => [name, checkLimit(limit, `limits.${name}`, AT_LEAST_ONE.includes(name) ? 1 : 0)]),
  )
}

function checkLimit(limit: number, param: string, least: number): number {
  if (!Number.isInteger(limit)) throw new KisError('unsupported_value', `\`${param}\` is a whole number.`, { param })
  return checkInteger(limit, param, least, Number.MAX_SAFE_INTEGER)
}

/**
 * Suspends any organization except the caller's. When this resolves, no call of the organization starts any more.
 * Idempotent. For operators.
 * @throws {KisError} `in_use`: it is the caller's own; `invalid_request`: it is deleted
 */
export async function suspendOrganization(
  deps: BillingDeps,
  principal: Principal,
  { organizationId, reason }: { readonly organizationId: string; readonly reason?: string | null },
): Promise<Organization> {
  requireOther(principal, organizationId, 'suspended')
  const suspensionReason = reason == null ? null : checkName(reason, 'reason')
  const now = deps.clock.now()
  return change(deps, principal, organizationId, ({ suspendedAt }) =>
    suspendedAt ? null : { kind: 'suspended', reason: suspensionReason, set: { suspendedAt: now, suspensionReason } },
  )
}

/**
 * Resumes a suspended organization. Idempotent. For operators.
 * @throws {KisError} `invalid_request`: it is deleted, or an import into it has not ended
 */
export async function resumeOrganization(deps: BillingDeps, principal: Principal, id: string): Promise<Organization> {
  return change(deps, principal, id, ({ suspendedAt, import: begun }) => {
    if (begun && !begun.isDone)
      throw new KisError('invalid_request', 'An import into the organization has not ended: repeat it, or delete the organization.')
    return suspendedAt ? { kind: 'resumed', set: { suspendedAt: null, suspensionReason: null } } : null
  })
}

/**
 * Deletes any organization except the caller's, for good: none of its keys works, and all subgraphs erase its data.
 * Idempotent. For operators.
 * @throws {KisError} `in_use`: it is the caller's own
 */
export async function deleteOrganization(deps: BillingDeps, principal: Principal, id: string): Promise<Organization> {
  requireOther(principal, id, 'deleted')
  const now = deps.clock.now()
  const deleted = await change(
    deps,
    principal,
    id,
    ({ deletedAt }) => (deletedAt ? null : { kind: 'deleted', set: { deletedAt: now, erasingSince: now } }),
    'also deleted',
  )
  // Billing's records are counted before any is deleted.
  await noteOwn(deps, id)
  await eraseWebhooks(deps, id)
  return deleted
}

/** Refuses the caller's own organization. Operators have the keys that resume organizations and see the others. */
function requireOther(principal: Principal, id: string, what: string): void {
  requireScope(principal, 'operator')
  if (id === principal.organizationId) throw new KisError('in_use', `The organization of your own key cannot be ${what}.`)
}

type Change = Pick<OrganizationChange, 'kind'> & {
  readonly reason?: string | null
  readonly set: Partial<Pick<Organization, 'plan' | 'limits' | 'suspendedAt' | 'suspensionReason' | 'deletedAt' | 'erasingSince'>>
}

/**
 * Changes the organization and records the change in one write. `decide` returns null if nothing changes. The rules are
 * put in force in any case: this repeats a call that was interrupted before.
 */
async function change(
  deps: BillingDeps,
  principal: Principal,
  id: string,
  decide: (organization: Organization) => Change | null,
  whom: 'living' | 'also deleted' = 'living',
): Promise<Organization> {
  requireScope(principal, 'operator')
  const { organizations } = deps.collections
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const before = await organizations.findOne({ _id: id })
    if (!before) throw new NotFound('organization', id, 'organizationId')
    if (before.deletedAt && whom === 'living')
      throw new KisError('invalid_request', 'The organization is deleted. Nothing of it can be changed.')
    const decided = decide(before)
    const after = decided ? await write(deps, principal, before, decided) : before
    if (!after) continue
    await putInForce(deps, id)
    return after
  }
  throw new KisError('service_unavailable', 'Too many requests change the organization at once.', { retryAfterMs: 1_000 })
}

/** Returns null when another change came first. */
async function write(
  deps: BillingDeps,
  { apiKeyId }: Principal,
  before: Organization,
  { kind, reason = null, set }: Change,
): Promise<Organization | null> {
  await storeLastChange(deps, before)
  const { plan, limits = {} } = { ...before, ...set }
  const lastChange: OrganizationChange = {
    _id: deps.ids('och'),
    organizationId: before._id,
    kind,
    plan,
    limits,
    reason,
    apiKeyId,
    at: deps.clock.now(),
  }
  return deps.collections.organizations.findOneAndUpdate(
    { _id: before._id, 'lastChange._id': before.lastChange?._id ?? null },
    { $set: { ...set, lastChange } },
  )
}

/** Copies the last change to the stored changes, where lists read it. Idempotent. */
export async function storeLastChange({ collections }: BillingDeps, { lastChange }: Organization): Promise<void> {
  if (lastChange) await collections.organizationChanges.insertMissing([lastChange])
}
