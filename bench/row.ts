/** One line of the report: a figure, its target, and what was measured beside it in the same run. */
export interface BenchRow {
  readonly what: string
  readonly figure: string
  readonly target: string
  readonly beside: string
}

export interface BenchOptions {
  /** Also measures LiteLLM and Portkey in the same run, and installs them if needed. */
  readonly peers: boolean
  /** Takes a fifth of the time, for a quick check. */
  readonly short: boolean
  /** Runs only the parts of a measurement whose names contain this text. */
  readonly only: string | undefined
  /** Requests per minute of the attacker's key. Undefined: no limit. */
  readonly limit: number | undefined
}
