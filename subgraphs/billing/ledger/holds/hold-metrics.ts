import { type Metrics, type Reading, readRarely } from '../../../common/telemetry/metrics.ts'
import { byTime } from '../../domain/by-time.ts'
import type { Collections } from '../../use-cases/tables.ts'

const NANO_USD = 1e9
/** Limit of wallets in one reading, because a wallet is a document of up to 1 MB. Further wallets are not counted. */
const MAX_WALLETS = 200

/** Reports the open holds. All processes on one store report the same values. */
export function watchHolds(metrics: Metrics, collections: Pick<Collections, 'wallets'>): Disposable {
  const stack = new DisposableStack()
  let held = 0
  const holds = readRarely(async (): Promise<readonly Reading[]> => {
    let wallets = 0
    let open = 0
    held = 0
    for await (const wallet of byTime(collections.wallets, 'nextExpiryAt', null)) {
      open += Object.keys(wallet.holds).length
      held += wallet.held / NANO_USD
      if (++wallets === MAX_WALLETS) break
    }
    return [[open]]
  })
  stack.use(metrics.gauge('kis_wallet_holds', holds))
  stack.use(
    metrics.gauge('kis_wallet_held_usd', async () => {
      await holds()
      return [[held]]
    }),
  )
  return stack
}
