import { parentPort } from 'node:worker_threads'
import { answerTo, type Question } from './judging.ts'

parentPort!.on('message', (question: Question) => parentPort!.postMessage(answerTo(question)))
parentPort!.postMessage('ready')
