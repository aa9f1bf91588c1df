import { gatewayOperation } from '../../schema/operations.ts'
import * as operations from '../contract/models.ts'
import { ok, type Route, route } from '../http/route.ts'
import { lowerCase, toEnum } from '../http/values.ts'
import { MODEL, toModel } from '../routes/models.ts'

const EFFECTS = gatewayOperation(`query ResidencyEffects($policy: ResidencyPolicy!) {
  residencyEffects(policy: $policy) { policy residencies permittedModels { ${MODEL} } forbiddenModels { ${MODEL} } } }`)

export const residencyEffectRoutes: readonly Route[] = [
  route({
    operation: operations.getResidencyEffects,
    async handle({ execute, query }) {
      const { residencyEffects } = await execute(EFFECTS, { policy: toEnum(String(query.policy)) })
      const { policy, residencies, permittedModels, forbiddenModels } = residencyEffects
      return ok({
        object: 'residency_effects',
        policy: lowerCase(policy),
        residencies: residencies.map((residency) => lowerCase(residency)),
        permitted_models: permittedModels.map(toModel),
        forbidden_models: forbiddenModels.map(toModel),
      })
    },
  }),
]
