import { reportChange } from '../../../common/events/event-log.ts'
import type { RunEvent } from '../../domain/agents/run.ts'
import type { RunDeps } from '../deps.ts'
import { describeAgentEnd } from '../runs/run-ends.ts'
import { toJson } from '../runs/run-json.ts'
import type { RunLog } from '../runs/run-log.ts'
import { writtenSteps } from './agent-work.ts'

const MAX_SWEPT = 100

/**
 * Ends runs that an earlier version of the service left. That version stored nothing with which another process could
 * continue them.
 */
export async function endRunsOfEarlierVersions(
  deps: Pick<RunDeps, 'collections' | 'clock' | 'runEnds'>,
  log: RunLog<RunEvent>,
): Promise<void> {
  const { runs } = deps.collections
  const now = deps.clock.now()
  const left = await runs.find({ leaseUntil: { $lt: now } }, { sort: { leaseUntil: 1 }, limit: MAX_SWEPT })
  for (const run of left) {
    const error = { code: 'service_unavailable', message: 'The process that ran it has ended.' } as const
    const { $set, $push } = reportChange(run.organizationId, now, describeAgentEnd(run, { status: 'failed', cost: null, error }))
    await runs.findOneAndUpdate(
      { _id: run._id, status: 'running', leaseUntil: { $lt: now } },
      {
        $set: { status: 'failed', steps: toJson(await writtenSteps(log, run._id)), cost: null, error, endedAt: now, ...$set },
        $push,
        $unset: { leaseUntil: '' },
      },
    )
    await log.end(run.organizationId, run._id, 'failed')
    deps.runEnds.kick(run.organizationId)
  }
}
