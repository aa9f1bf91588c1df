import { workerData } from 'node:worker_threads'
import { serveQuestions } from '../../subgraphs/common/process/threads/bounded-thread.ts'
import type { Prepared } from '../documents.ts'
import { createPlanner } from './planner.ts'

/** An operation to plan. */
export type Planned = Pick<Prepared, 'text' | 'operationName'>

const planner = createPlanner(workerData as string)

/** The other side of `PlannerClient`. */
serveQuestions(({ text, operationName }: Planned) => planner.plan(text, operationName))
