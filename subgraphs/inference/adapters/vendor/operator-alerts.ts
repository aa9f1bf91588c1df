import type { Clock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import type { OperatorFault } from '../../domain/engines/engine-failure.ts'
import type { OnOperatorFault } from './engine-errors.ts'

/** Frequent enough to be noticed in the log, without flooding it when every call fails. */
const REPEAT_MS = 600_000

/** Operators search for these texts, so do not change them. */
const MESSAGES: Readonly<Record<OperatorFault, string>> = {
  account: 'engine refuses the account of the service: check its key and its remaining credit',
  model: 'engine does not have a model of the catalog: change or remove its entry',
}

/** Logs, as errors, faults that only the operator can fix: each kind of fault of the engine once in 10 minutes. */
export function operatorAlerts(engine: string, clock: Clock, log: Log): OnOperatorFault {
  const reportedAt = new Map<OperatorFault, number>()
  return (fault, said) => {
    const now = clock.now().getTime()
    if (now - (reportedAt.get(fault) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS) return
    reportedAt.set(fault, now)
    log.error({ engine, fault, said }, MESSAGES[fault])
  }
}
