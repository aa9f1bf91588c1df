import { answering } from '../../../common/process/threads/thread-calls.ts'
import { judge } from './judging.ts'

/** The other side of `AjvSchemaJudge`. */
export const call = answering(judge)
