import { answering } from '../../../common/process/threads/thread-calls.ts'
import { judge } from './judging.ts'

/** The worker thread's part of `AjvSchemaJudge`. */
export const call = answering(judge)
