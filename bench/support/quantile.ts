/** Returns the value below which `share` (0 to 1) of the values are. */
export function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * (values.length - 1))]!
}

/** Returns, for example, `p50 1.2 ms, p99 3.4 ms`. */
export function p50AndP99(values: readonly number[]): string {
  return `p50 ${quantile(values, 0.5).toFixed(1)} ms, p99 ${quantile(values, 0.99).toFixed(1)} ms`
}

/** Returns, for example, `p50 1.2 ms, p95 2.3 ms, p99 3.4 ms`. */
export function p50P95AndP99(values: readonly number[]): string {
  return [0.5, 0.95, 0.99].map((share) => `p${share * 100} ${quantile(values, share).toFixed(1)} ms`).join(', ')
}
