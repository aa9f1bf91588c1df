const EVERY_MS = 5_000

/** Prints how far a part is, every few seconds and at its end. */
export class Progress {
  readonly #say: (line: string) => void

  constructor(say: (line: string) => void) {
    this.#say = say
  }

  /** Runs a part. It calls `moved` with what it has done, and with bytes if it counts them. */
  async of<T>(what: string, run: (moved: (records: number, bytes?: number) => void) => Promise<T>): Promise<T> {
    const began = performance.now()
    let [records, bytes] = [0, 0]
    let quietUntil = began + EVERY_MS
    const tell = (ending: string) => {
      const seconds = Math.max((performance.now() - began) / 1_000, 0.001)
      const size = bytes > 0 ? `, ${megabytes(bytes)} MB at ${megabytes(bytes / seconds)} MB/s` : ''
      this.#say(`${what}: ${whole(records)}${ending} in ${seconds.toFixed(1)} s, ${whole(records / seconds)}/s${size}`)
    }
    const result = await run((more, moreBytes = 0) => {
      records += more
      bytes += moreBytes
      if (performance.now() < quietUntil) return
      quietUntil = performance.now() + EVERY_MS
      tell(' so far')
    })
    if (records > 0) tell('')
    return result
  }
}

function whole(number: number): string {
  return Math.round(number).toLocaleString('en')
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1)
}
