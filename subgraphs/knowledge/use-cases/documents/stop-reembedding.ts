import type { Deps } from '../deps.ts'

/** Has the worker of a re-embedding end it: after the batch that it is at, and at once if it waits for a repeat. */
export async function stopReembedding({ store, clock, wake }: Pick<Deps, 'store' | 'clock' | 'wake'>, id: string): Promise<void> {
  await store.reembeddings.findOneAndUpdate({ _id: id, status: 'running', outcome: null }, { $set: { status: 'cancelling' } })
  await store.reembeddings.findOneAndUpdate({ _id: id, 'job.kind': 'reembed', 'job.lease': null }, { $set: { 'job.dueAt': clock.now() } })
  wake()
}
