import { LRUCache } from 'lru-cache'
import { KisError } from '../../../common/errors.ts'
import { hasRequestLimit, requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { Deps } from '../deps.ts'

/** Downloads that a process remembers, about 2 MB. The next piece of one that it has dropped counts as a request. */
const MAX_DOWNLOADS = 10_000
/** Where the next piece of a download begins, by key and file. */
const nextPieces = new LRUCache<string, number>({ max: MAX_DOWNLOADS })

/**
 * Counts a piece of a file as a request of the caller's key, unless it follows the last piece that the key has read: a
 * download counts once, and pieces that are read again and again all count. While inference does not answer, downloads
 * go on without.
 * @throws {KisError} `rate_limit_exceeded`: the key has no request left.
 */
export async function countDownload(
  { inference }: Pick<Deps, 'inference'>,
  context: LinkContext,
  { id, offset, length }: { readonly id: string; readonly offset: number; readonly length: number },
): Promise<void> {
  const caller = requireScope(context.caller, 'knowledge:read')
  if (!hasRequestLimit(caller)) return
  const download = `${caller.apiKeyId} ${id}`
  const isNext = nextPieces.get(download) === offset
  // Before the count is waited for, so that of several equal pieces at once all but one count.
  nextPieces.set(download, offset + length)
  if (isNext) return
  await inference.countRequest({ ...context, caller }).catch((error) => {
    nextPieces.delete(download)
    if (!(error instanceof KisError && error.code === 'service_unavailable')) throw error
  })
}
