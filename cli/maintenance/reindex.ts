import type { Service } from './service.ts'

const REBUILD_INDEX = 'mutation RebuildIndex($after: String) { rebuildIndex(after: $after) { chunks next replaced } }'
/** Chunks between two lines of progress. */
const REPORT_EVERY = 10_000

/**
 * Rebuilds the chunk index while the service runs. If it is interrupted, run it again: it starts anew. Returns true if
 * the index could not be read and was replaced by an empty one, which `kis verify --repair` fills.
 */
export async function reindex(service: Service, { json }: { readonly json: boolean }, say: (line: string) => void): Promise<boolean> {
  const report = (chunks: number, isOver: boolean) =>
    say(json ? JSON.stringify({ rebuilt: chunks, done: isOver }) : `${chunks} chunks ${isOver ? 'rebuilt' : 'so far'}`)
  let chunks = 0
  let reported = 0
  for (let after: string | null = null; ; ) {
    const { rebuildIndex: step }: { rebuildIndex: { chunks: number; next: string | null; replaced: boolean } } = await service.execute(
      REBUILD_INDEX,
      { after },
    )
    if (step.replaced) {
      say(json ? JSON.stringify({ replaced: true }) : 'the index could not be read; an empty one has replaced it, and is now being filled')
      return true
    }
    chunks += step.chunks
    if (step.next === null) {
      report(chunks, true)
      return false
    }
    if (chunks - reported >= REPORT_EVERY) {
      reported = chunks
      report(chunks, false)
    }
    after = step.next
  }
}
