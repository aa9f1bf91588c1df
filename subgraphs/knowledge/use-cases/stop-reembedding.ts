import type { Deps } from './deps.ts'

/** Makes the worker of a re-embedding end it: after the current batch, or at once if the job waits for a retry. */
export async function stopReembedding({ store, clock, wake }: Pick<Deps, 'store' | 'clock' | 'wake'>, id: string): Promise<void> {
  await store.reembeddings.findOneAndUpdate({ _id: id, status: 'running', outcome: null }, { $set: { status: 'cancelling' } })
  await store.reembeddings.findOneAndUpdate({ _id: id, 'job.kind': 'reembed', 'job.lease': null }, { $set: { 'job.dueAt': clock.now() } })
  wake()
}
