import type { Fingerprints } from '../identity/accepted-secrets.ts'
import type { DocumentCollection, IndexSpec, StoredDocument } from '../ports/document-store.ts'
import type { Clock } from '../process/clock.ts'
import type { Log } from '../process/log.ts'
import type { Task } from '../process/tasks.ts'
import { type SecretMark, stillNeeded } from './secret-mark.ts'

/** A document that depends on the installation's secret. */
export type SecretDependent = StoredDocument & {
  /** The secret that it depends on. Absent: the one in the mark of its store. */
  readonly secretFingerprint?: string
}

/** Finds and counts the documents of one secret. */
export const SECRET_INDEX: IndexSpec = { fields: ['secretFingerprint'], sparse: true }

/** As GraphQL names them. */
export type DependentKind = 'api_keys' | 'invitations' | 'webhook_endpoints' | 'agents' | 'agent_versions'

/** The documents of one collection, which has `SECRET_INDEX`. */
export interface Dependents<T extends SecretDependent = SecretDependent> {
  readonly kind: DependentKind
  readonly collection: DocumentCollection<T>
  /**
   * Moves a document of the previous secret to the current one if that can be done now, and otherwise notes `madeWith`
   * in it. May be repeated, by several processes at once: a write is guarded, so that a change meanwhile wins, and the
   * next pass looks again.
   */
  move(document: T, madeWith: string): Promise<unknown>
}

export interface RotationProgress {
  /**
   * `none`: one secret alone is accepted; `next_accepted`: the next one, too; `moving`: some documents depend on the
   * previous secret, or were not looked at; `moved`: none does.
   */
  readonly state: 'none' | 'next_accepted' | 'moving' | 'moved'
  /** At most `MAX_COUNTED` of each. Nothing before all documents were looked at. */
  readonly parts: readonly { readonly kind: DependentKind; readonly current: number; readonly left: number }[]
}

export interface RotationParts {
  readonly dependents: readonly Dependents[]
  readonly fingerprints: Fingerprints
  readonly mark: SecretMark
  readonly clock: Clock
  readonly log: Log
}

/** Documents of one read: an agent has up to some 100 KB. */
const BATCH = 50
/** Counting reads the index. */
const MAX_COUNTED = 100_000
/** Between two passes over what is left, which others may move or end. */
const LEAST_PAUSE_MS = 2_000
/** A pass takes at most this part of a processor: unused keys may be many, and stay for weeks. */
const PAUSE_PER_PASS = 20

/**
 * Moves the documents of one store from the previous secret to the current one. It holds no state: whatever ends it,
 * it begins anew, and finds what is left. The mark of the store moves last.
 */
export class SecretRotation {
  readonly #parts: RotationParts
  readonly #moved = Promise.withResolvers<void>()
  #isLooked = false
  #isMoved = false

  constructor(parts: RotationParts) {
    this.#parts = parts
  }

  /** Resolves when a previous secret is accepted, and nothing in the store depends on it any more. */
  get moved(): Promise<void> {
    return this.#moved.promise
  }

  /**
   * @throws {Error} documents depend on a secret that is not accepted: it was taken away too early
   */
  async requireAccepted(): Promise<void> {
    const { dependents, fingerprints } = this.#parts
    const accepted = Object.values(fingerprints)
      .filter((each) => each !== null)
      .sort()
    for (const { collection } of dependents)
      for (let i = 0; i <= accepted.length; i++) {
        const between = { ...(i > 0 && { $gt: accepted[i - 1]! }), ...(i < accepted.length && { $lt: accepted[i]! }) }
        if ((await collection.countDocuments({ secretFingerprint: between }, { limit: 1 })) > 0) throw stillNeeded(this.#parts.mark)
      }
  }

  /** None without a previous secret. */
  get tasks(): readonly Task[] {
    if (this.#parts.fingerprints.previous === null) return []
    let restUntil = 0
    const run = async (signal: AbortSignal) => {
      const begun = performance.now()
      if (begun < restUntil) return
      await this.step(signal)
      restUntil = performance.now() + (performance.now() - begun) * PAUSE_PER_PASS
    }
    return [{ name: 'move_to_secret', everyMs: LEAST_PAUSE_MS, run }]
  }

  /** Moves what can be moved now. The first step looks at every document; later ones only at those that are left. */
  async step(signal: AbortSignal): Promise<void> {
    const { fingerprints, mark } = this.#parts
    const { previous } = fingerprints
    if (previous === null) return
    if (!this.#isLooked && mark.fingerprint === previous) await this.#lookAtAll(previous, signal)
    this.#isLooked = true
    await this.#pass(previous, signal)
    if (await this.#hasLeft(previous)) this.#isMoved = false
    else await this.#end()
  }

  async progress(): Promise<RotationProgress> {
    const { dependents, fingerprints } = this.#parts
    const { current, next, previous } = fingerprints
    if (previous === null) return { state: next === null ? 'none' : 'next_accepted', parts: [] }
    if (!this.#isLooked) return { state: 'moving', parts: [] }
    const count = ({ collection }: Dependents, of: string) => collection.countDocuments({ secretFingerprint: of }, { limit: MAX_COUNTED })
    const parts = await Promise.all(
      dependents.map(async (each) => ({ kind: each.kind, current: await count(each, current), left: await count(each, previous) })),
    )
    return { state: this.#isMoved && parts.every(({ left }) => left === 0) ? 'moved' : 'moving', parts }
  }

  /** Whether each document that depends on the previous secret says so. */
  get isLooked(): boolean {
    return this.#isLooked
  }

  async #hasLeft(previous: string): Promise<boolean> {
    for (const { collection } of this.#parts.dependents)
      if ((await collection.countDocuments({ secretFingerprint: previous }, { limit: 1 })) > 0) return true
    return false
  }

  async #lookAtAll(previous: string, signal: AbortSignal): Promise<void> {
    await this.#each(
      ({ collection }, after) => collection.find({ _id: { $gt: after } }, { limit: BATCH }),
      async ({ move }, document) => {
        if ((document.secretFingerprint ?? previous) === previous) await move(document, previous)
      },
      signal,
    )
  }

  async #pass(previous: string, signal: AbortSignal): Promise<void> {
    await this.#each(
      ({ collection }, after) => collection.find({ secretFingerprint: previous, _id: { $gt: after } }, { sort: { _id: 1 }, limit: BATCH }),
      ({ move }, document) => move(document, previous),
      signal,
    )
  }

  /** Works on each document. One that fails keeps no other from it; the first failure is thrown at the end. */
  async #each(
    read: (dependents: Dependents, after: string) => Promise<readonly SecretDependent[]>,
    work: (dependents: Dependents, document: SecretDependent) => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    let failed: { readonly error: unknown } | undefined
    for (const dependents of this.#parts.dependents)
      for (let after = '', isMore = true; isMore; ) {
        const batch = await read(dependents, after)
        for (const document of batch) {
          signal.throwIfAborted()
          await work(dependents, document).catch((error) => {
            failed ??= { error }
          })
        }
        isMore = batch.length === BATCH
        if (isMore) after = batch.at(-1)!._id
      }
    if (failed) throw failed.error
  }

  async #end(): Promise<void> {
    const { mark, log } = this.#parts
    if (this.#isMoved) return
    await mark.move()
    this.#isMoved = true
    log.info({}, 'nothing in this store depends on the previous secret any more')
    this.#moved.resolve()
  }
}
