import { afterEach } from 'vitest'
import { ServiceProcess } from './processes/service.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** What the service's processes warned of while the test ran, if it failed. */
    warnings?: readonly string[]
  }
}

/** As the log numbers its levels. */
const WARNING = 40
const MAX_LINES = 10
const MAX_CHARACTERS = 800

interface LogLine {
  readonly level: number
  /** As ISO 8601 writes it. */
  readonly time: string
}

afterEach(({ task }) => {
  if (task.result?.state !== 'fail') return
  const { startTime = 0 } = task.result
  task.meta.warnings = ServiceProcess.started
    .flatMap(({ errors }) => errors.split('\n'))
    .map((text) => ({ text, line: parse(text) }))
    .filter(({ line }) => line && line.level >= WARNING && Date.parse(line.time) >= startTime)
    .slice(-MAX_LINES)
    .map(({ text }) => text.slice(0, MAX_CHARACTERS))
})

function parse(text: string): LogLine | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
