import type { Plan, Principal, ResidencyPolicy, Scope } from './principal.ts'

/** Billing's `Principal` as its SDL has it. */
export const PRINCIPAL_FIELDS = `organizationId apiKeyId ancestors scopes modelAllowlist residencyPolicy requestsPerMinute tokensPerMinute revision rotations isEnded
    plan { code storageBytes vectors maxFileBytes requestsPerMinute tokensPerMinute concurrency }`

export interface PrincipalAnswer {
  readonly organizationId: string
  readonly apiKeyId: string
  readonly ancestors: readonly string[]
  /** Enum values: `KNOWLEDGE_READ`. */
  readonly scopes: readonly string[]
  readonly modelAllowlist: readonly string[] | null
  readonly residencyPolicy: string
  readonly plan: Plan
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly revision: number
  readonly rotations: number
  readonly isEnded: boolean
}

export function principalFrom(answer: PrincipalAnswer): Principal {
  return {
    ...answer,
    scopes: answer.scopes.map((scope) => scope.toLowerCase().replace('_', ':') as Scope),
    residencyPolicy: answer.residencyPolicy.toLowerCase() as ResidencyPolicy,
  }
}
