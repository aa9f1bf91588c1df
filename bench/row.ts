/** One line of the report: a figure, its limit, and what was measured beside it in the same run. */
export interface BenchRow {
  readonly what: string
  readonly figure: string
  readonly bar: string
  readonly beside: string
}

export interface BenchOptions {
  /** Also measures LiteLLM and Portkey in the same run, and installs them if needed. */
  readonly peers: boolean
  /** Takes a fifth of the time, for a first look. */
  readonly short: boolean
  /** Measures only what has this text in its name, where a measurement has several. */
  readonly only: string | undefined
  /** The attacker's key has this many requests a minute. Undefined: no limit. */
  readonly limit: number | undefined
}
