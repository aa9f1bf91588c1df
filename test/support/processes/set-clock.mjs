// Preloaded by `NODE_OPTIONS=--import`: on SIGUSR2 the machine's clock is set to be wrong by as many milliseconds as the file says, and the file is removed.
import { readFileSync, rmSync } from 'node:fs'

let wrongMs = 0
process.on('SIGUSR2', () => {
  wrongMs = Number(readFileSync(process.env.KIS_TEST_CLOCK_FILE, 'utf8'))
  rmSync(process.env.KIS_TEST_CLOCK_FILE)
})
const rightNow = Date.now
const RightDate = Date
const now = () => rightNow() + wrongMs
globalThis.Date = class extends RightDate {
  constructor(...args) {
    super(...(args.length === 0 ? [now()] : args))
  }
  static now() {
    return now()
  }
}
