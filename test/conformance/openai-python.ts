import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Python, pythonWith } from '../support/installed.ts'
import type { ConformanceClient, Thrown, Understood } from './clients.ts'

/** The client as pip names it. */
export const OPENAI_PIP = 'openai==3.54.0'

/** The Python that has the official client; or why there is none. */
export const pythonWithOpenai = (): Promise<Python> => pythonWith(OPENAI_PIP)

/** The official OpenAI client for Python, in a process of its own. */
export async function openaiPython(python: string, baseUrl: string, apiKey: string): Promise<ConformanceClient> {
  const script = fileURLToPath(new URL('./openai-python.py', import.meta.url))
  const child = spawn(python, [script, `${baseUrl}/v1`, apiKey], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => {
    const { done, value } = await lines.next()
    if (done) throw new Error('the Python process has ended')
    return JSON.parse(value)
  }
  await next()
  const call = async <Value>(operation: string, ...args: readonly unknown[]): Promise<Value> => {
    child.stdin.write(`${JSON.stringify([operation, args])}\n`)
    const { error, value } = await next()
    if (error !== undefined) throw new Error(error)
    return value
  }
  return {
    name: 'openai for Python',
    complete: (prompt) => call<Understood>('answer', prompt),
    stream: (prompt) => call<Understood>('stream', prompt),
    failure: (prompt, isStream) => call<Thrown>('failure', prompt, isStream),
    disconnect: (prompt) => call<void>('leave', prompt),
    async close() {
      child.stdin.end()
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
