import { expect, it } from 'vitest'
import { systemClock } from '../../../common/process/clock.ts'
import { type Log, silentLog } from '../../../common/process/log.ts'
import { operatorAlerts } from './operator-alerts.ts'

it('logs each kind of fault as an error, once in ten minutes', () => {
  const lines: unknown[] = []
  let ms = 0
  const clock = { ...systemClock, now: () => new Date(ms) }
  const alert = operatorAlerts('acme', clock, { ...silentLog, error: (...line: unknown[]) => void lines.push(line) } as unknown as Log)
  alert('account', 'no credit')
  alert('account', 'no credit')
  alert('model', null)
  ms = 600_000
  alert('account', null)
  expect(lines).toEqual([
    [{ engine: 'acme', fault: 'account', said: 'no credit' }, expect.stringContaining('refuses the account')],
    [{ engine: 'acme', fault: 'model', said: null }, expect.stringContaining('does not have a model')],
    [{ engine: 'acme', fault: 'account', said: null }, expect.stringContaining('refuses the account')],
  ])
})
