import { type Logger, pino } from 'pino'

/**
 * Structured lines on standard error; standard output is for the operator. Keys, prompts and texts of files are never
 * logged.
 */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/** Creates the log of a process. `service` names the process in each line. */
export function createLog(service: string, level: string): Log {
  return pino(
    {
      level,
      base: { service },
      redact: ['apiKey', 'authorization', '*.apiKey', '*.authorization'],
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    pino.destination({ dest: 2, sync: false }),
  )
}

export const silentLog: Log = pino({ level: 'silent' })
