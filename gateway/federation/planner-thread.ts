import { serveWorker, workerInput } from '../../subgraphs/common/process/worker-rpc.ts'
import { createPlanner } from './planner.ts'

const { plan } = createPlanner(workerInput<string>())

/** The other side of `PlannerClient`. */
serveWorker({ plan })
