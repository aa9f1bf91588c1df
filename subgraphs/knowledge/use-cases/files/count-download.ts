import { KisError } from '../../../common/errors.ts'
import { hasRequestLimit, requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { Deps } from '../deps.ts'

/**
 * Counts a download, or a piece of one, as a request of the caller's key. While inference is unavailable, downloads
 * continue uncounted.
 * @throws {KisError} `rate_limit_exceeded`: the key's rate limit is reached.
 */
export async function countDownload({ inference }: Pick<Deps, 'inference'>, context: LinkContext): Promise<void> {
  const caller = requireScope(context.caller, 'knowledge:read')
  if (!hasRequestLimit(caller)) return
  await inference.countRequest({ ...context, caller }).catch((error) => {
    if (!(error instanceof KisError && error.code === 'service_unavailable')) throw error
  })
}
