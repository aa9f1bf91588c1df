import type { SelectedOfBilling } from '../../../schema/operations.ts'
import { InvalidApiKey, KisError, PermissionDenied } from '../errors.ts'

export const SCOPES = ['inference', 'knowledge:read', 'knowledge:write', 'agents', 'billing:read', 'admin', 'operator'] as const
export type Scope = (typeof SCOPES)[number]
export type ResidencyPolicy = 'unrestricted' | 'regional' | 'local_only'

/** What an organization may use; null: no limit. */
export interface Plan {
  readonly code: string
  readonly storageBytes: number | null
  readonly vectors: number | null
  readonly maxFileBytes: number
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number
  /** Pages that OCR reads in a calendar month of UTC. Absent: no limit, as in tokens of earlier versions. */
  readonly ocrPages?: number | null
  /** USD as a decimal string. Absent: 0. */
  readonly ocrPagePrice?: string
}

/** The rates that one key has of its own; null: none. */
export interface KeyRates {
  readonly apiKeyId: string
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
}

/** The caller of a request. The gateway derives it from an API key, and processes pass it on as a signed token. */
export interface Principal {
  readonly organizationId: string
  readonly apiKeyId: string
  /**
   * The keys that this key descends from, its direct parent last. Its spending also counts against theirs. Empty: an
   * organization's first key.
   */
  readonly ancestors: readonly string[]
  readonly scopes: readonly Scope[]
  /** Ids of models; null: every model. */
  readonly modelAllowlist: readonly string[] | null
  readonly residencyPolicy: ResidencyPolicy
  readonly plan: Plan
  /** The plan's limits, or stricter ones of the key; null: no limit. */
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  /** The rates of its ancestors that have any: its calls count against these, too. Absent: none. */
  readonly ancestorRates?: readonly KeyRates[]
  /**
   * Revision of the organization's rules (residency policy, plan, what its keys may do) from which this principal was
   * read. Billing places holds only for the current revision.
   */
  readonly revision: number
  /** How often the key's secret was replaced. */
  readonly rotations: number
  /** The key is revoked or has expired. Work accepted earlier may still finish. */
  readonly isEnded?: boolean
  /** The organization is suspended or deleted: nothing more may begin for it. What is under way may be settled. */
  readonly isSuspended?: boolean
  /** The caller is a run of an agent or a workflow, for as long as the key has the scope `agents`. */
  readonly isRun?: boolean
  /** The session by which the caller came. Absent: the caller sent a key. */
  readonly sessionId?: string | null
}

/**
 * How soon a call must reach its engine after billing has let it begin; else it asks billing again. A change of rules
 * is answered this much later while calls are under way, so that no call begun under the old rules reaches an engine
 * after the answer. A hundred times what a process needs unless it is overloaded.
 */
export const CONFIRM_MS = 2_000

/** A process of the service that acts for itself: key lookup, reaper, pumps. It belongs to no organization. */
export interface ServicePrincipal {
  readonly service: 'gateway' | 'knowledge' | 'inference' | 'billing' | 'rest-adapter'
}

export type Caller = Principal | ServicePrincipal

const INSIDE_ONE_ORGANIZATION: readonly Scope[] = ['inference', 'knowledge:read', 'knowledge:write', 'agents', 'billing:read', 'admin']
/** A key that may run an agent or a workflow may let it call its models and search its collections. */
const LENT_TO_RUNS: readonly Scope[] = ['inference', 'knowledge:read']

export function hasScope(principal: Pick<Principal, 'scopes' | 'isRun'>, scope: Scope): boolean {
  if (principal.isRun && LENT_TO_RUNS.includes(scope)) return hasScope({ ...principal, isRun: false }, 'agents')
  if (principal.scopes.includes(scope)) return true
  if (scope === 'operator') return false
  // `admin` includes every scope inside its organization. An operator is an admin of its own organization.
  return INSIDE_ONE_ORGANIZATION.includes(scope) && (principal.scopes.includes('admin') || principal.scopes.includes('operator'))
}

/** The key, or one that it descends from, has a limit of requests by the minute. */
export function hasRequestLimit({ requestsPerMinute, ancestorRates = [] }: Principal): boolean {
  return [{ requestsPerMinute }, ...ancestorRates].some((rates) => rates.requestsPerMinute !== null)
}

/** The principal with those of its scopes that these include, too. */
export function withinScopes(principal: Principal, scopes: readonly Scope[]): Principal {
  const own = { ...principal, isRun: false }
  return { ...principal, scopes: SCOPES.filter((scope) => hasScope(own, scope) && hasScope({ ...own, scopes }, scope)) }
}

/**
 * Gives the caller's principal if it has the scope.
 * @throws {InvalidApiKey} the caller is not an organization's
 * @throws {PermissionDenied} the caller lacks the scope
 */
export function requireScope(caller: Caller | null, scope: Scope): Principal {
  const principal = requirePrincipal(caller)
  if (!hasScope(principal, scope)) throw new PermissionDenied(scope)
  return principal
}

export function requirePrincipal(caller: Caller | null): Principal {
  if (!caller || 'service' in caller) throw new InvalidApiKey()
  return caller
}

/** @throws {KisError} `permission_denied`: the caller is not a process of the service */
export function requireService(caller: Caller | null): ServicePrincipal {
  if (!caller || !('service' in caller)) throw new KisError('permission_denied', 'This operation is for services only.')
  return caller
}

/** The fields of billing's `Principal`. */
export const PRINCIPAL_FIELDS = `organizationId apiKeyId ancestors scopes modelAllowlist residencyPolicy requestsPerMinute tokensPerMinute revision rotations isEnded isSuspended sessionId
    ancestorRates { apiKeyId requestsPerMinute tokensPerMinute }
    plan { code storageBytes vectors maxFileBytes requestsPerMinute tokensPerMinute concurrency ocrPages ocrPagePrice }`

export type PrincipalResult = SelectedOfBilling<'Principal', typeof PRINCIPAL_FIELDS>

export function principalFrom(result: PrincipalResult): Principal {
  return {
    ...result,
    scopes: result.scopes.map((scope) => scope.toLowerCase().replace('_', ':') as Scope),
    residencyPolicy: result.residencyPolicy.toLowerCase() as ResidencyPolicy,
  }
}
