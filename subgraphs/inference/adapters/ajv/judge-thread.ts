import { answering } from '../../../common/process/threads/thread-calls.ts'
import { answerTo } from './judging.ts'

/** The other side of `AjvSchemaJudge`. */
export const call = answering(answerTo)
