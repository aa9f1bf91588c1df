import type { EngineKind } from './engine.ts'
import type { ModelEntry } from './model.ts'

/** Fields that refer to a model or an engine, or are referred to. */
export const REFERENCES: readonly PropertyKey[] = ['id', 'engine', 'kind', 'aliases', 'fallbacks']

/** Kinds of models that these engines do not serve. */
const KINDS_LACKED: Readonly<Partial<Record<EngineKind, readonly ModelEntry['kind'][]>>> = {
  openai: ['rerank'],
  azure: ['rerank'],
  anthropic: ['embedding', 'transcription', 'rerank'],
  google: ['transcription', 'rerank'],
  bedrock: ['transcription', 'rerank'],
  mistral: ['transcription', 'rerank'],
  cohere: ['transcription', 'rerank'],
  rerank: ['chat', 'embedding', 'transcription'],
  embedded: ['transcription', 'rerank'],
}

type Referring = Pick<ModelEntry, 'id' | 'engine' | 'kind' | 'aliases' | 'fallbacks'>
type Report = (path: (string | number)[], message: string) => void

/** Checks that every reference leads to exactly one suitable engine or model. */
export function checkReferences(
  engines: Readonly<Record<string, { readonly kind: EngineKind }>>,
  models: readonly Referring[],
  report: Report,
): void {
  const byId = new Map<string, Referring>()
  for (const [index, model] of models.entries()) {
    if (byId.has(model.id)) report(['models', index, 'id'], `\`${model.id}\` occurs twice`)
    byId.set(model.id, model)
    const engine = Object.hasOwn(engines, model.engine) ? engines[model.engine]! : null
    if (!engine) report(['models', index, 'engine'], `there is no engine \`${model.engine}\``)
    else if (KINDS_LACKED[engine.kind]?.includes(model.kind))
      report(['models', index, 'kind'], `engines of the kind ${engine.kind} have no models of the kind ${model.kind}`)
  }
  const aliased = new Set<string>()
  for (const [index, model] of models.entries()) {
    for (const [position, alias] of model.aliases.entries()) {
      if (byId.has(alias)) report(['models', index, 'aliases', position], `\`${alias}\` is the id of a model`)
      if (aliased.has(alias)) report(['models', index, 'aliases', position], `\`${alias}\` occurs twice`)
      aliased.add(alias)
    }
    for (const [position, id] of model.fallbacks.entries()) {
      const fallback = byId.get(id)
      if (!fallback || fallback === model) report(['models', index, 'fallbacks', position], `there is no other model \`${id}\``)
      else if (model.fallbacks.indexOf(id) < position) report(['models', index, 'fallbacks', position], `\`${id}\` occurs twice`)
      else if (fallback.kind !== model.kind) report(['models', index, 'fallbacks', position], `\`${id}\` is of another kind`)
    }
  }
}
