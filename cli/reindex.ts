import type { Service } from './service.ts'

const REBUILD_INDEX = 'mutation ($after: String) { rebuildIndex(after: $after) { chunks next } }'
/** Chunks between two lines that say how far it is. */
const TOLD_EVERY = 10_000

/** Builds the chunk index anew while the service runs. Interrupted, it is done again from the start, which does no harm. */
export async function reindex(service: Service, { json }: { readonly json: boolean }, say: (line: string) => void): Promise<void> {
  const tell = (chunks: number, isOver: boolean) =>
    say(json ? JSON.stringify({ rebuilt: chunks, done: isOver }) : `${chunks} chunks ${isOver ? 'rebuilt' : 'so far'}`)
  let chunks = 0
  let told = 0
  for (let after: string | null = null; ; ) {
    const { rebuildIndex: step }: { rebuildIndex: { chunks: number; next: string | null } } = await service.ask(REBUILD_INDEX, { after })
    chunks += step.chunks
    if (step.next === null) return tell(chunks, true)
    if (chunks - told >= TOLD_EVERY) {
      told = chunks
      tell(chunks, false)
    }
    after = step.next
  }
}
