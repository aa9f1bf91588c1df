import { resolve } from 'node:path'
import type { ImportedRules } from '../../subgraphs/billing/portable.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { createLog } from '../../subgraphs/common/process/log.ts'
import { readConfig } from '../settings/config.ts'
import { trackReads } from '../settings/environment.ts'
import { readStoreLocations } from '../settings/servers.ts'
import { ArchiveReader } from './archive-reader.ts'
import { exportInstallation } from './export-installation.ts'
import { exportOrganization } from './export-organization.ts'
import { type InstallationScope, requireOrganizationId, visible } from './format.ts'
import { checkInstallation, importInstallation } from './import-installation.ts'
import { importOrganization } from './import-organization.ts'
import { readPassphrase } from './passphrase.ts'
import { NOT_WHOLE, References } from './references.ts'
import { requireData } from './stores.ts'

/** Arguments of `kis export`. */
export interface ExportArguments {
  readonly file: string
  /** Undefined: the whole installation. */
  readonly organizationId: string | undefined
  readonly withSecret: boolean
  /** Whether to verify the archive after it is written. */
  readonly check: boolean
}

/** Arguments of `kis import`. */
export interface ImportArguments {
  readonly file: string
  /** The target organization: an ID, or `new`. */
  readonly as: string | undefined
  readonly check: boolean
}

type Say = (line: string) => void

/** Permission bits that archives must not have: they contain texts and the ledger. */
const GROUP_AND_OTHERS = 0o077

/** @throws {Error} see `exportInstallation` and `exportOrganization`; or the passphrase is missing or short */
export async function runExport(args: ExportArguments, environment: NodeJS.ProcessEnv, say: Say): Promise<void> {
  const { organizationId, withSecret, check } = args
  if (organizationId !== undefined) requireOrganizationId(organizationId)
  const passphrase = withSecret ? await requirePassphrase(environment) : null
  const { locations, environmentSecret: secret } = readStoreLocations(environment)
  requireData(locations)
  process.umask(GROUP_AND_OTHERS)
  const file = resolve(args.file)
  const options = { locations, file, passphrase }
  if (organizationId === undefined) {
    const { manifest, bytes } = await exportInstallation({ ...options, environmentSecret: secret, say })
    const { to, records, files } = manifest
    say(`${args.file}: ${countsOf(records)}, and ${megabytes(files.bytes)} of contents, as of ${to}, in ${megabytes(bytes)}`)
    if (check) say(await judge(await ArchiveReader.open(file), args.file))
    if (!passphrase) say('The secret is not in it. Back up the secret as well: without it, no API key works after an import.')
    return
  }
  const { name, manifest, bytes } = await exportOrganization({ ...options, config: configOf(environment), organizationId })
  const { from, to, records, files, left } = manifest
  const when = from === to ? `as of ${to}` : `as it was between ${from} and ${to}`
  say(`${args.file}: ${quoted(name)} (${organizationId}) ${when}, in ${megabytes(bytes)}`)
  say(`It has ${countsOf(records)}, and ${files.count} files of ${megabytes(files.bytes)}.`)
  if (Object.keys(left).length > 0)
    say(
      `Not in it: ${Object.entries(left)
        .map(([what, count]) => `${count} ${what}`)
        .join(', ')}.`,
    )
  if (check) say(await judge(await ArchiveReader.open(file), args.file))
  say('Its keys are in it without their secrets, and its balance as a report only.')
}

/** @throws {Error} see `importInstallation` and `importOrganization`; or the passphrase is missing */
export async function runImport({ file, as, check }: ImportArguments, environment: NodeJS.ProcessEnv, say: Say): Promise<void> {
  const target = as === 'new' ? idSource(systemClock)('org') : as === undefined ? null : requireOrganizationId(as)
  const archive = await ArchiveReader.open(resolve(file))
  const { scope } = archive.head
  const passphrase = () => requirePassphrase(environment)
  process.umask(GROUP_AND_OTHERS)
  if (scope.what === 'installation') {
    if (target !== null) throw new Error(`${file} has all data of an installation, and --as is for that of one organization.`)
    return check ? say(await judge(archive, file)) : importAll({ archive, scope, passphrase }, environment, say)
  }
  const { locations } = readStoreLocations(environment)
  const { organizationId, manifest, rules, wasDone, key, lackingModels, problems } = await importOrganization({
    config: configOf(environment),
    locations,
    archive,
    scope,
    as: target,
    check,
    passphrase,
    log: createLog('import', 'warn'),
  })
  const what = `${quoted(scope.name)} (${scope.id}) as of ${manifest.to}: ${countsOf(manifest.records)}`
  if (check) {
    requireWhole(file, problems)
    say(`${file} is complete and can be imported here: ${what}.`)
    say(describeRules(rules))
    return
  }
  for (const problem of problems) say(`${NOT_WHOLE}: ${problem}.`)
  say(wasDone ? `${organizationId} was imported from ${file} before: nothing was done.` : `${organizationId} has ${what}.`)
  say(describeRules(rules))
  if (lackingModels.length > 0) say(`Agents use models that the catalog here lacks: ${lackingModels.map(quoted).join(', ')}.`)
  say(
    'Its wallet is empty: the balance stays where it was. Its keys have no secret until you rotate them, and its webhooks are switched off.',
  )
  if (key) say(`API key of an admin, shown until its first use: ${key}`)
}

async function importAll(
  { archive, scope, passphrase }: { archive: ArchiveReader; scope: InstallationScope; passphrase(): Promise<string> },
  environment: NodeJS.ProcessEnv,
  say: Say,
): Promise<void> {
  const { locations, environmentSecret, logLevel } = readStoreLocations(environment)
  const log = createLog('import', logLevel)
  const { manifest, lacking } = await importInstallation({ archive, scope, locations, environmentSecret, passphrase, log, say })
  const into = locations.mongodb ? 'The databases have' : `${locations.dataDirectory} has`
  say(`${into} ${countsOf(manifest.records)}, as of ${manifest.to}.`)
  if (!archive.head.secret && !environmentSecret)
    say(`The secret was not in the archive: put its file into ${locations.dataDirectory}, or set KIS_SECRET.`)
  else if (!environmentSecret && locations.mongodb)
    say(`The secret is in ${locations.dataDirectory}: set KIS_SECRET to it in every process.`)
  if (lacking.length === 0) return say('Start the service, then run `kis verify`.')
  say(`The vectors of ${lacking.length} documents are not in the archive. The first is ${lacking[0]}.`)
  say('Start the service, then run `kis verify --repair`: it embeds them again, and the operator pays.')
}

/**
 * Reads an archive, and returns a sentence that it is complete.
 * @throws {Error} it is corrupted, or its records refer to missing ones
 */
async function judge(archive: ArchiveReader, file: string): Promise<string> {
  const { scope } = archive.head
  const { manifest, problems } = await (scope.what === 'organization' ? checkRecords(archive) : checkInstallation(archive, scope))
  requireWhole(file, problems)
  return `${file} is complete: ${countsOf(manifest.records)}, as of ${manifest.to}.`
}

/** Checks the records of an organization's archive, but not whether it fits an installation. */
async function checkRecords(archive: ArchiveReader) {
  const references = new References()
  const manifest = await archive.read({
    async records(kind, values) {
      for (const value of values) references.add(kind, value)
    },
    file: async () => undefined,
  })
  return { manifest, problems: references.problems() }
}

function requireWhole(file: string, problems: readonly string[]): void {
  if (problems.length > 0) throw new Error(`${file} is readable, but incomplete: ${problems.join('; ')}.`)
}

function configOf(environment: NodeJS.ProcessEnv) {
  const config = readConfig(environment)
  for (const sentence of config.ignored) console.error(sentence)
  return config
}

async function requirePassphrase(environment: NodeJS.ProcessEnv): Promise<string> {
  const { env, problems } = trackReads(environment)
  const passphrase = await readPassphrase(env)
  if (problems().length > 0) throw new Error(problems().join('\n'))
  return passphrase
}

/**
 * Describes the rules of an archive for the operator to confirm: an archive is not signed, so anybody may have written
 * them.
 */
function describeRules({ plan, limits = {}, suspendedAt, suspensionReason }: ImportedRules): string {
  const own = Object.entries(limits).map(([name, limit]) => `${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)} ${limit}`)
  const suspended = suspendedAt ? `suspended since ${suspendedAt.toISOString()}` : 'not suspended'
  const why = suspendedAt && suspensionReason ? `, because ${quoted(suspensionReason)}` : ''
  return `Set by the archive: plan ${plan}; ${own.length > 0 ? `limits ${own.join(', ')}` : 'no limits of its own'}; ${suspended}${why}.`
}

/** Returns the text on one line. */
function quoted(text: string): string {
  return visible(JSON.stringify(text))
}

/** Counts the records by kinds that people know. */
function countsOf(records: Readonly<Record<string, number>>): string {
  const known = [
    ...(records['billing/organizations'] === undefined ? [] : ['billing/organizations']),
    'knowledge/collections',
    'knowledge/documents',
    'inference/agents',
    'inference/workflows',
    'inference/threads',
    'inference/runs',
  ]
  return known.map((kind) => `${records[kind] ?? 0} ${kind.split('/')[1]}`).join(', ')
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(bytes < 1_000_000 ? 3 : 1)} MB`
}
