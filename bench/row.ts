/** One line of the report: a figure, the bar that it is held to, and what was measured beside it in the same run. */
export interface BenchRow {
  readonly what: string
  readonly figure: string
  readonly bar: string
  readonly beside: string
}

export interface BenchOptions {
  /** Measure LiteLLM and Portkey in the same run; they are installed where they are not. */
  readonly peers: boolean
}
