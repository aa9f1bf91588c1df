import { serveQuestions } from '../../../common/process/threads/bounded-thread.ts'
import { answerTo } from './judging.ts'

/** The other side of `AjvSchemaJudge`. */
serveQuestions(answerTo)
