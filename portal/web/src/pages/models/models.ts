import { graphql, type ResultOf } from '../../data/graphql.ts'
import type { Filters } from './filters.ts'

export const MODELS = graphql(`
  query Models {
    models {
      id
      kind
      vendor
      residency
      supportsVision
      supportsTools
      supportsResponseSchema
      supportsReasoning
      contextWindow
      maxOutputTokens
      dimensions
      createdAt
      aliases
      fallbacks {
        id
        residency
      }
      price {
        input
        cachedInput
        cacheWrite
        output
        audioMinute
        searchThousand
        tiers {
          aboveInputTokens
          input
          cachedInput
          output
        }
      }
    }
  }
`)

export type Model = ResultOf<typeof MODELS>['models'][number]

export function filterModels(models: readonly Model[], { q = '', kind, residency, vendor, can = [] }: Filters): readonly Model[] {
  const words = q.toLowerCase().split(/\s+/)
  return models.filter(
    (model) =>
      words.every((word) => `${model.id} ${model.vendor}`.toLowerCase().includes(word)) &&
      (!kind || model.kind === kind) &&
      (!residency || model.residency === residency) &&
      (!vendor || model.vendor === vendor) &&
      can.every((ability) => model[ability]),
  )
}
