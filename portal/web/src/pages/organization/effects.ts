import type { Agent, Collection, Effects } from './organization.ts'

interface Model {
  readonly id: string
  readonly residency: Effects['residencies'][number]
}

/** An object of the organization, and its models that a policy forbids. */
export interface Stopped {
  readonly id: string
  readonly name: string
  readonly models: readonly string[]
}

/** What stops working, or works less well, under another residency policy. */
export interface Stops {
  /** The collections whose embedding model is forbidden: nothing can be added to them or found in them. */
  readonly collections: readonly Stopped[]
  /** The collections that keep working without reranking or transcription. */
  readonly weakened: readonly Stopped[]
  readonly agents: readonly Stopped[]
}

/** Returns the organization's objects that stop working under a policy that permits only models of `residencies`. */
export function whatStops(
  residencies: Effects['residencies'],
  collections: readonly Pick<Collection, 'id' | 'name' | 'embeddingModel' | 'rerankModel' | 'transcriptionModel'>[],
  agents: readonly Agent[],
): Stops {
  const forbidden = (...models: readonly (Model | null)[]) =>
    models.filter((model) => model !== null && !residencies.includes(model.residency)).map((model) => model!.id)
  const stopped = ({ id, name }: { id: string; name: string }, models: readonly string[]) =>
    models.length > 0 ? [{ id, name, models }] : []
  const isStopped = ({ embeddingModel }: Pick<Collection, 'embeddingModel'>) => forbidden(embeddingModel).length > 0
  return {
    collections: collections.flatMap((each) => stopped(each, forbidden(each.embeddingModel))),
    weakened: collections
      .filter((each) => !isStopped(each))
      .flatMap((each) => stopped(each, forbidden(each.rerankModel, each.transcriptionModel))),
    agents: agents.flatMap((each) => stopped(each, forbidden(each.model))),
  }
}
