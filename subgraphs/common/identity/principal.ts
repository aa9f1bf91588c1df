import { InvalidApiKey, KisError, PermissionDenied } from '../errors.ts'

export const SCOPES = ['inference', 'knowledge:read', 'knowledge:write', 'agents', 'billing:read', 'admin', 'operator'] as const
export type Scope = (typeof SCOPES)[number]
export type ResidencyPolicy = 'unrestricted' | 'regional' | 'local_only'

/** What an organization may use; null means no limit. */
export interface Plan {
  readonly code: string
  readonly storageBytes: number | null
  readonly vectors: number | null
  readonly maxFileBytes: number
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number
}

/** Whoever calls: made by the gateway from an API key, and carried between processes as a signed token. */
export interface Principal {
  readonly organizationId: string
  readonly apiKeyId: string
  /** The keys that the key descends from, its maker last: what it spends counts in theirs too. Empty: an organization's first key. */
  readonly ancestors: readonly string[]
  readonly scopes: readonly Scope[]
  /** Ids of models; null: every model. */
  readonly modelAllowlist: readonly string[] | null
  readonly residencyPolicy: ResidencyPolicy
  readonly plan: Plan
  /** Of the plan, or tighter ones of the key; null: no limit. */
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  /**
   * Of the organization's rules that the rest was read from: its residency policy and plan, and what its keys may do. Billing holds money by the
   * rules in force only.
   */
  readonly revision: number
  /** How often the key's secret has been replaced. */
  readonly rotations: number
  /** The key was revoked or has run out: what was accepted before may be finished. */
  readonly isEnded?: boolean
  /** A run of an agent or a workflow calls, for as long as the key has the scope `agents`. */
  readonly isRun?: boolean
}

/**
 * A call that billing has let begin reaches its engine within this, or asks again; a change of rules is answered so much later while calls are under
 * way. So a call that was let begin by the former rules does not reach an engine after the answer. A hundred times what a process takes that is not
 * overloaded.
 */
export const LET_BEGIN_MS = 2_000

/** A process of the service acting for itself: key lookup, reaper, pumps. It belongs to no organization. */
export interface ServicePrincipal {
  readonly service: 'gateway' | 'knowledge' | 'inference' | 'billing' | 'rest-adapter'
}

export type Caller = Principal | ServicePrincipal

const INSIDE_ONE_ORGANIZATION: readonly Scope[] = ['inference', 'knowledge:read', 'knowledge:write', 'agents', 'billing:read', 'admin']
/** Whoever may run an agent or a workflow may have it ask its models and search its collections. */
const LENT_TO_RUNS: readonly Scope[] = ['inference', 'knowledge:read']

export function hasScope(principal: Principal, scope: Scope): boolean {
  if (principal.isRun && LENT_TO_RUNS.includes(scope)) return hasScope({ ...principal, isRun: false }, 'agents')
  if (principal.scopes.includes(scope)) return true
  if (scope === 'operator') return false
  // `admin` holds every scope inside its organization; an operator is an admin of its own organization.
  return INSIDE_ONE_ORGANIZATION.includes(scope) && (principal.scopes.includes('admin') || principal.scopes.includes('operator'))
}

/** The caller as a principal of an organization with the scope. @throws {InvalidApiKey} @throws {PermissionDenied} */
export function requireScope(caller: Caller | null, scope: Scope): Principal {
  const principal = requirePrincipal(caller)
  if (!hasScope(principal, scope)) throw new PermissionDenied(scope)
  return principal
}

export function requirePrincipal(caller: Caller | null): Principal {
  if (!caller || 'service' in caller) throw new InvalidApiKey()
  return caller
}

/** @throws {KisError} `permission_denied` unless a process of the service asks for itself. */
export function requireService(caller: Caller | null): ServicePrincipal {
  if (!caller || !('service' in caller)) throw new KisError('permission_denied', 'This operation is for services only.')
  return caller
}
