/** Keeps the `count` ids with the highest scores of all offered ones; among equals, those offered first. */
export class Top {
  readonly #count: number
  readonly #best: { readonly id: number; readonly score: number }[] = []
  /** A score must be higher than this to get in. */
  #least = Number.NEGATIVE_INFINITY

  constructor(count: number) {
    this.#count = count
  }

  /** NaN is never higher, and never gets in. */
  offer(id: number, score: number): void {
    if (!(score > this.#least)) return
    const at = this.#best.findLastIndex((other) => other.score >= score) + 1
    this.#best.splice(at, 0, { id, score })
    if (this.#best.length > this.#count) this.#best.pop()
    if (this.#best.length === this.#count) this.#least = this.#best[this.#count - 1]!.score
  }

  /** Best first. */
  get ids(): readonly number[] {
    return this.#best.map(({ id }) => id)
  }
}
