import { setTimeout as sleep } from 'node:timers/promises'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Service } from './service.ts'

export interface VerifyOptions {
  readonly repair: boolean
  /** Undefined: all collections. */
  readonly collectionId: string | undefined
  /** Prints lines of JSON instead of text. */
  readonly json: boolean
}

/** Kinds of differences between the index and the store. */
type Difference = 'MISSING' | 'INCOMPLETE' | 'EXTRA' | 'REPAIRING'
/** `LARGE` is a warning. */
type Kind = Difference | 'LARGE'

interface Finding {
  readonly kind: Kind
  readonly collectionId: string
  readonly documentId: string | null
  readonly generation: string | null
  readonly expected: number | null
  readonly found: number | null
  readonly repaired: boolean
  readonly restored: boolean
}

interface Page {
  readonly collections: number
  readonly documents: number
  readonly chunks: number
  readonly findings: readonly Finding[]
  readonly needsRebuild: boolean
  readonly next: string | null
}

const VERIFY_INDEX = `mutation VerifyIndex($input: VerifyIndexInput!) {
  verifyIndex(input: $input) {
    collections documents chunks needsRebuild next
    findings { kind collectionId documentId generation expected found repaired restored }
  }
}`

const OLD_TERMS = 'the index has words of an earlier version, so searches miss some: run `kis reindex`'

/** How often documents that are being ingested again are polled. */
const POLL_MS = 1_000
/** When no document finishes for this long, waiting stops. Six failures of one document take up to 30 min. */
const STALLED_MS = 35 * 60_000

/**
 * Compares the index with the store and prints the differences. With `repair` it repairs them, and waits until
 * documents that are ingested again have finished. Returns true if no difference remains.
 */
export async function verify(
  service: Service,
  { repair, collectionId, json }: VerifyOptions,
  say: (line: string) => void,
): Promise<boolean> {
  const reported = new Set<string>()
  const report = (finding: Finding) => {
    const line = json ? JSON.stringify({ part: 'index', ...finding, kind: finding.kind.toLowerCase() }) : describeFinding(finding)
    if (!reported.has(line)) say(line)
    reported.add(line)
  }
  const first = await pass(service, { repair, collectionId }, report)
  const result = first.requeued.size === 0 && !first.hasRepaired ? first : await afterRepair(service, first, collectionId, report)
  if (result.needsRebuild) say(json ? JSON.stringify({ part: 'index', kind: 'old_terms' }) : OLD_TERMS)
  say(json ? JSON.stringify({ part: 'index', ...result.counts }) : describeCounts(result.counts))
  const { missing, incomplete, extra, repairing } = result.counts
  return missing + incomplete + extra + repairing === 0
}

interface Pass {
  readonly counts: Readonly<Record<'collections' | 'documents' | 'chunks' | 'missing' | 'incomplete' | 'extra' | 'repairing', number>>
  /** Whether something was repaired at once. */
  readonly hasRepaired: boolean
  /** Whether the index has the terms of an earlier version. */
  readonly needsRebuild: boolean
  /** Collections with documents that are ingested again. */
  readonly requeued: ReadonlySet<string>
}

async function pass(
  service: Service,
  { repair, collectionId }: { readonly repair: boolean; readonly collectionId: string | undefined },
  report: (finding: Finding) => void,
): Promise<Pass> {
  const counts = { collections: 0, documents: 0, chunks: 0, missing: 0, incomplete: 0, extra: 0, repairing: 0 }
  const requeued = new Set<string>()
  let hasRepaired = false
  for (let after: string | null = null; ; ) {
    const { verifyIndex: page }: { verifyIndex: Page } = await service.execute(VERIFY_INDEX, {
      input: { collectionId: collectionId ?? null, repair, after },
    })
    for (const sum of ['collections', 'documents', 'chunks'] as const) counts[sum] += page[sum]
    for (const finding of page.findings) {
      report(finding)
      if (finding.kind === 'LARGE') continue
      counts[finding.kind.toLowerCase() as Lowercase<Difference>]++
      hasRepaired ||= finding.repaired
      if (finding.kind === 'REPAIRING' || (finding.repaired && finding.kind !== 'EXTRA')) requeued.add(finding.collectionId)
    }
    if (page.next === null) return { counts, hasRepaired, needsRebuild: page.needsRebuild, requeued }
    after = page.next
  }
}

/** Waits for the documents that are ingested again, then compares everything once more without repairing. */
async function afterRepair(
  service: Service,
  { requeued }: Pass,
  collectionId: string | undefined,
  report: (finding: Finding) => void,
): Promise<Pass> {
  for (const waited of requeued) {
    let open = Number.POSITIVE_INFINITY
    let since = Date.now()
    for (;;) {
      const repairing = await repairingIn(service, waited)
      if (repairing === 0) break
      if (repairing < open) since = Date.now()
      else if (Date.now() - since > STALLED_MS) break
      open = Math.min(open, repairing)
      await sleep(POLL_MS)
    }
  }
  return pass(service, { repair: false, collectionId }, report)
}

async function repairingIn(service: Service, collectionId: string): Promise<number> {
  try {
    return (await pass(service, { repair: false, collectionId }, () => undefined)).counts.repairing
  } catch (error) {
    // The collection was deleted meanwhile.
    if (error instanceof KisError && error.code === 'not_found') return 0
    throw error
  }
}

function describeFinding({ kind, collectionId, documentId, generation, expected, found, repaired, restored }: Finding): string {
  const location = [collectionId, documentId, generation].filter((part) => part !== null).join(' ')
  const done = repaired ? (kind === 'EXTRA' ? ', deleted' : restored ? ', restored' : documentId ? ', is ingested again' : ', created') : ''
  const what = {
    MISSING: documentId ? `${found ?? 0} of ${expected ?? 'its'} chunks` : 'not in the index',
    INCOMPLETE: `${found} of ${expected} chunks`,
    EXTRA: `${found} extra chunks`,
    REPAIRING: 'is being ingested again',
    LARGE: `${found} chunks are more than the embedded index searches fast: use Elasticsearch (KIS_ELASTICSEARCH_URL)`,
  }
  return `${kind.toLowerCase()} ${location}: ${what[kind]}${done}`
}

function describeCounts({ collections, documents, chunks, missing, incomplete, extra, repairing }: Pass['counts']): string {
  return `${collections} collections, ${documents} documents, ${chunks} chunks: ${missing} missing, ${incomplete} incomplete, ${extra} extra, ${repairing} being repaired`
}
