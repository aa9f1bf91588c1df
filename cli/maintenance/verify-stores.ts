import type { Service } from './service.ts'

type Say = (line: string) => void
interface Form {
  /** Prints lines of JSON instead of text. */
  readonly json: boolean
}

interface Page {
  readonly next: string | null
}

/** Yields every page of an operation. */
async function* fetchPages<T extends Page>(service: Service, field: string, selection: string): AsyncGenerator<T> {
  const query = `query Verify_${field}($after: String) { ${field}(after: $after) { ${selection} next } }`
  for (let after: string | null = null; ; ) {
    const page: T = (await service.execute<Record<string, T>>(query, { after }))[field]!
    yield page
    if (page.next === null) return
    after = page.next
  }
}

/** Returns a function that prints each line once: several pages may report the same. */
function teller({ json }: Form, say: Say) {
  const reported = new Set<string>()
  return (finding: object, text: string) => {
    const line = json ? JSON.stringify(finding) : text
    if (reported.has(line)) return false
    reported.add(line)
    say(line)
    return true
  }
}

interface FilesPage extends Page {
  readonly files: readonly { readonly name: string; readonly problems: readonly string[] }[]
}

/** Runs SQLite's own check of every file. Returns true if all are in order. */
export async function verifyFiles(service: Service, form: Form, say: Say): Promise<boolean> {
  const report = teller(form, say)
  let checked = 0
  let corrupted = 0
  for (const role of ['Billing', 'Inference', 'Knowledge']) {
    for await (const { files } of fetchPages<FilesPage>(service, `verify${role}Files`, 'files { name problems }')) {
      for (const { name: file, problems } of files) {
        checked++
        if (problems.length > 0) corrupted++
        for (const problem of problems) report({ part: 'files', kind: 'damaged', file, problem }, `corrupted ${file}: ${problem}`)
      }
    }
  }
  const text = checked === 0 ? 'files: none; the database servers check their own' : `files: ${checked} checked, ${corrupted} corrupted`
  report({ part: 'files', files: checked, damaged: corrupted }, text)
  return corrupted === 0
}

interface LedgerPage extends Page {
  readonly organizations: number
  readonly entries: number
  readonly totals: number
  readonly findings: readonly {
    readonly kind: string
    readonly organizationId: string
    readonly subject: string | null
    readonly expected: string | null
    readonly found: string | null
  }[]
}

/** Checks the ledger against its own rules. Returns true if none is broken. */
export async function verifyLedger(service: Service, form: Form, say: Say): Promise<boolean> {
  const report = teller(form, say)
  const counts = { organizations: 0, entries: 0, totals: 0, findings: 0 }
  const selection = 'organizations entries totals findings { kind organizationId subject expected found }'
  for await (const page of fetchPages<LedgerPage>(service, 'verifyLedger', selection)) {
    for (const sum of ['organizations', 'entries', 'totals'] as const) counts[sum] += page[sum]
    for (const finding of page.findings) {
      const { organizationId, subject, expected, found } = finding
      const kind = finding.kind.toLowerCase()
      const subjectText = [kind, organizationId, subject].filter((part) => part !== null).join(' ')
      const text = `${subjectText}: ${found ?? 'nothing'} instead of ${expected ?? 'nothing'}`
      if (report({ part: 'ledger', ...finding, kind }, text)) counts.findings++
    }
  }
  const { organizations, entries, totals, findings } = counts
  report(
    { part: 'ledger', ...counts },
    `ledger: ${organizations} organizations, ${entries} entries, ${totals} totals: ${findings} findings`,
  )
  return findings === 0
}

interface BlobsPage extends Page {
  readonly blobs: number
  readonly texts: number
  readonly findings: readonly {
    readonly kind: 'MISSING' | 'DAMAGED'
    readonly organizationId: string
    readonly fileIds: readonly string[]
    readonly documentId: string | null
    readonly detail: string
  }[]
}

/** Checks stored bytes against their checksums. Returns true if all are intact. */
export async function verifyBlobs(service: Service, form: Form, say: Say): Promise<boolean> {
  const report = teller(form, say)
  const counts = { blobs: 0, texts: 0, missing: 0, damaged: 0 }
  const selection = 'blobs texts findings { kind organizationId fileIds documentId detail }'
  for await (const page of fetchPages<BlobsPage>(service, 'verifyBlobs', selection)) {
    counts.blobs += page.blobs
    counts.texts += page.texts
    for (const finding of page.findings) {
      const { organizationId, fileIds, documentId, detail } = finding
      const kind = finding.kind === 'MISSING' ? 'missing' : 'damaged'
      const what = documentId === null ? `file ${fileIds.join(' ')}` : `text of ${documentId}`
      const word = kind === 'missing' ? 'missing' : 'corrupted'
      if (report({ part: 'blobs', ...finding, kind }, `${word} ${organizationId} ${what}: ${detail}`)) counts[kind]++
    }
  }
  const { blobs, texts, missing, damaged } = counts
  report({ part: 'blobs', ...counts }, `blobs: ${blobs} contents of files, ${texts} texts: ${missing} missing, ${damaged} corrupted`)
  return missing + damaged === 0
}
