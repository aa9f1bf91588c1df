interface Renewal {
  readonly everyMs: number
  /** Returns false when another owner has what was to be renewed. */
  renew(): Promise<boolean>
  /** Called when `renew` returns false. */
  lost?(): void
  /** Called when `renew` fails. The next renewal may succeed. */
  failed?(error: unknown): void
}

/** Renews a lease or lock until disposal. It does not keep the process alive. */
export function renewWhile({ everyMs, renew, lost, failed }: Renewal): Disposable {
  const timer = setInterval(() => {
    renew().then((isHeld) => isHeld || lost?.(), failed ?? (() => undefined))
  }, everyMs).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
