import type { SelectedOfBilling } from '../../../schema/operations.ts'
import type { Principal, ResidencyPolicy, Scope } from './principal.ts'

/** The fields of billing's `Principal`. */
export const PRINCIPAL_FIELDS = `organizationId apiKeyId ancestors scopes modelAllowlist residencyPolicy requestsPerMinute tokensPerMinute revision rotations isEnded isSuspended sessionId
    ancestorRates { apiKeyId requestsPerMinute tokensPerMinute }
    plan { code storageBytes vectors maxFileBytes requestsPerMinute tokensPerMinute concurrency ocrPages ocrPagePrice }`

export type PrincipalAnswer = SelectedOfBilling<'Principal', typeof PRINCIPAL_FIELDS>

export function principalFrom(answer: PrincipalAnswer): Principal {
  return {
    ...answer,
    scopes: answer.scopes.map((scope) => scope.toLowerCase().replace('_', ':') as Scope),
    residencyPolicy: answer.residencyPolicy.toLowerCase() as ResidencyPolicy,
  }
}
