interface Renewal {
  readonly everyMs: number
  /** False: somebody else has what was to be renewed. */
  renew(): Promise<boolean>
  /** Called when `renew` gives false. */
  lost?(): void
  /** Called when `renew` fails. The next one may succeed. */
  failed?(error: unknown): void
}

/** Renews what a piece of work holds, until it is disposed. It does not keep the process alive. */
export function renewWhile({ everyMs, renew, lost, failed }: Renewal): Disposable {
  const timer = setInterval(() => {
    renew().then((isHeld) => isHeld || lost?.(), failed ?? (() => undefined))
  }, everyMs).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
