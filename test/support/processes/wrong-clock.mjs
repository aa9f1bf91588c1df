// Preloaded by `NODE_OPTIONS=--import`: the machine's clock is wrong by so many milliseconds.
const wrongMs = Number(process.env.KIS_TEST_CLOCK_WRONG_MS)
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
