import { gatewayOperation } from '../../schema/operations.ts'
import { ok, type Route } from '../http/route.ts'
import { toEnum } from '../http/values.ts'
import { MODEL, toModel } from '../routes/models.ts'

const EFFECTS = gatewayOperation(`query ResidencyEffects($policy: ResidencyPolicy!) {
  residencyEffects(policy: $policy) { policy residencies permittedModels { ${MODEL} } forbiddenModels { ${MODEL} } } }`)

export const residencyEffectRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/organization/residency-effects',
    async handle({ execute, query }) {
      const { residencyEffects } = await execute(EFFECTS, { policy: toEnum(String(query.policy)) })
      const { policy, residencies, permittedModels, forbiddenModels } = residencyEffects
      return ok({
        object: 'residency_effects',
        policy: policy.toLowerCase(),
        residencies: residencies.map((residency) => residency.toLowerCase()),
        permitted_models: permittedModels.map(toModel),
        forbidden_models: forbiddenModels.map(toModel),
      })
    },
  },
]
