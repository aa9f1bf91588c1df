import { resolve } from 'node:path'
import type { ImportedRules } from '../../subgraphs/billing/portable.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { createLog } from '../../subgraphs/common/process/log.ts'
import { lookAt } from '../backup/back-up.ts'
import { megabytes } from '../backup/megabytes.ts'
import { readPassphrase } from '../backup/passphrase.ts'
import { refuseHalfRestored } from '../backup/restoring.ts'
import { refuseHalfCopied } from '../copy/copying.ts'
import { readConfig } from '../settings/config.ts'
import { trackReads } from '../settings/environment.ts'
import { readPlaces } from '../settings/variables.ts'
import { exportOrganization } from './export-organization.ts'
import { requireOrganizationId } from './format.ts'
import { importOrganization } from './import-organization.ts'

export interface ExportArguments {
  readonly file: string
  readonly organizationId: string
  readonly withSecrets: boolean
}

export interface ImportArguments {
  readonly file: string
  /** An id, or `new`. */
  readonly as: string | undefined
  readonly check: boolean
}

type Say = (line: string) => void

/** Archives have texts and the ledger. */
const GROUP_AND_OTHERS = 0o077

/** @throws {Error} see `exportOrganization`; or the passphrase is missing or short */
export async function runExport(
  { file, organizationId, withSecrets }: ExportArguments,
  environment: NodeJS.ProcessEnv,
  say: Say,
): Promise<void> {
  requireOrganizationId(organizationId)
  const passphrase = withSecrets ? await givenPassphrase(environment) : null
  // First, because reading the configuration makes a secret in an empty folder.
  if (!trackReads(environment).env.KIS_MONGODB_URL) {
    const { KIS_DATA_DIR } = readPlaces(environment)
    refuseHalfMade(KIS_DATA_DIR)
    lookAt(KIS_DATA_DIR)
  }
  const config = configOf(environment)
  process.umask(GROUP_AND_OTHERS)
  const { name, manifest, bytes } = await exportOrganization({
    config,
    organizationId,
    file: resolve(file),
    passphrase,
    log: createLog('export', 'warn'),
  })
  const { from, to, records, files, left } = manifest
  const when = from === to ? `as of ${to}` : `as it was between ${from} and ${to}`
  say(`${file}: ${quoted(name)} (${organizationId}) ${when}, in ${megabytes(bytes)}`)
  say(`It has ${countsOf(records)}, and ${files.count} files of ${megabytes(files.bytes)}.`)
  if (Object.keys(left).length > 0)
    say(
      `Not in it: ${Object.entries(left)
        .map(([what, count]) => `${count} ${what}`)
        .join(', ')}.`,
    )
  say('Its keys are in it without their secrets, and its balance as a report only.')
}

/** @throws {Error} see `importOrganization`; or the passphrase is missing */
export async function runImport({ file, as, check }: ImportArguments, environment: NodeJS.ProcessEnv, say: Say): Promise<void> {
  const target = as === 'new' ? idSource(systemClock)('org') : as === undefined ? null : requireOrganizationId(as)
  refuseHalfMade(readPlaces(environment).KIS_DATA_DIR)
  const config = configOf(environment)
  process.umask(GROUP_AND_OTHERS)
  const { organizationId, head, manifest, rules, wasDone, key, lackingModels } = await importOrganization({
    config,
    file: resolve(file),
    as: target,
    check,
    passphrase: () => givenPassphrase(environment),
    log: createLog('import', 'warn'),
  })
  const what = `${quoted(head.name)} (${head.organizationId}) as of ${manifest.to}: ${countsOf(manifest.records)}`
  if (check) {
    say(`${file} is whole and can be imported here: ${what}.`)
    say(describeRules(rules))
    return
  }
  say(wasDone ? `${organizationId} was imported from ${file} before: nothing was done.` : `${organizationId} has ${what}.`)
  say(describeRules(rules))
  if (lackingModels.length > 0) say(`Agents ask models that the catalog here has not: ${lackingModels.map(quoted).join(', ')}.`)
  say(
    'Its wallet is empty: the balance stays where it was. Its keys have no secret until you rotate them, and its webhooks are switched off.',
  )
  if (key) say(`API key of an admin, shown until its first use: ${key}`)
}

/** What is put into the target of a copy would go again when the copy goes on. */
function refuseHalfMade(dataDirectory: string): void {
  refuseHalfRestored(dataDirectory)
  refuseHalfCopied(dataDirectory)
}

function configOf(environment: NodeJS.ProcessEnv) {
  const config = readConfig(environment)
  for (const sentence of config.ignored) console.error(sentence)
  return config
}

async function givenPassphrase(environment: NodeJS.ProcessEnv): Promise<string> {
  const { env, problems } = trackReads(environment)
  const passphrase = await readPassphrase(env)
  if (problems().length > 0) throw new Error(problems().join('\n'))
  return passphrase
}

/** An archive is not signed, so these may be of anybody's making. */
function describeRules({ plan, limits = {}, suspendedAt, suspensionReason }: ImportedRules): string {
  const own = Object.entries(limits).map(([name, limit]) => `${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)} ${limit}`)
  const suspended = suspendedAt ? `suspended since ${suspendedAt.toISOString()}` : 'not suspended'
  const why = suspendedAt && suspensionReason ? `, because ${quoted(suspensionReason)}` : ''
  return `Set by the archive: plan ${plan}; ${own.length > 0 ? `limits ${own.join(', ')}` : 'no limits of its own'}; ${suspended}${why}.`
}

/** On one line, and with nothing that a terminal obeys. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (hidden) => `\\u{${hidden.codePointAt(0)!.toString(16)}}`)
}

/** Records by what people know: those that an import only reads past are the accounts' report. */
function countsOf(records: Readonly<Record<string, number>>): string {
  const known = [
    'knowledge/collections',
    'knowledge/documents',
    'inference/agents',
    'inference/workflows',
    'inference/threads',
    'inference/runs',
  ]
  return known.map((kind) => `${records[kind] ?? 0} ${kind.split('/')[1]}`).join(', ')
}
