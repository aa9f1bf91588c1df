import { resolve } from 'node:path'
import { backUp } from '../backup/back-up.ts'
import { megabytes } from '../backup/megabytes.ts'
import { readPassphrase } from '../backup/passphrase.ts'
import { restore } from '../backup/restore.ts'
import { refuseHalfCopied } from '../copy/copying.ts'
import { type Environment, trackReads } from '../settings/environment.ts'
import { readPlaces } from '../settings/variables.ts'

export interface BackupArguments {
  readonly file: string
  readonly since: string | undefined
  readonly withSecret: boolean
}

export interface RestoreArguments {
  readonly file: string
  readonly since: readonly string[]
  readonly check: boolean
}

type Say = (line: string) => void

/** Files that these commands write have texts and the ledger. */
const GROUP_AND_OTHERS = 0o077

/** @throws {Error} see `backUp`; or the passphrase is missing or short */
export async function makeBackup({ file, since, withSecret }: BackupArguments, environment: Environment, say: Say): Promise<void> {
  const { env, problems } = trackReads(environment)
  if (env.KIS_MONGODB_URL)
    throw new Error('The data is in MongoDB, which has a backup of its own: docs/operate/backup.md says in which order.')
  const isRotating = env.KIS_SECRET_PREVIOUS !== undefined && env.KIS_SECRET_PREVIOUS !== env.KIS_SECRET
  const sealing = withSecret ? { passphrase: await readPassphrase(env), secret: env.KIS_SECRET, isRotating } : null
  if (problems().length > 0) throw new Error(problems().join('\n'))
  const dataDirectory = readPlaces(environment).KIS_DATA_DIR
  refuseHalfCopied(dataDirectory)
  process.umask(GROUP_AND_OTHERS)
  const { manifest, bytes, leftOut } = await backUp({
    dataDirectory,
    file: resolve(file),
    since: since && resolve(since),
    withSecret: sealing,
  })
  const held = manifest.files.reduce((sum, each) => sum + each.bytes, 0)
  say(`${file}: ${manifest.files.length} files of ${megabytes(held)} as of ${manifest.madeAt}, in ${megabytes(bytes)}`)
  if (manifest.since) say(`It needs ${manifest.since.name}: keep the two together.`)
  for (const name of leftOut) say(`${name} is not in it, because it is missing or damaged. \`kis reindex\` makes it again after a restore.`)
  if (!manifest.secret) say('The secret is not in it. Keep the secret as well: without it no API key works after a restore.')
}

/** @throws {Error} see `restore`; or the passphrase is missing */
export async function restoreBackup({ file, since, check }: RestoreArguments, environment: Environment, say: Say): Promise<void> {
  const { env, problems } = trackReads(environment)
  const dataDirectory = readPlaces(environment).KIS_DATA_DIR
  process.umask(GROUP_AND_OTHERS)
  const { madeAt, files, secret } = await restore({
    dataDirectory,
    file: resolve(file),
    since: since.map((each) => resolve(each)),
    check,
    async passphrase() {
      const passphrase = await readPassphrase(env)
      if (problems().length > 0) throw new Error(problems().join('\n'))
      return passphrase
    },
  })
  const what = `${files.length} files as of ${madeAt}`
  if (check) {
    say(`${file} is whole: ${what}.`)
    return
  }
  say(`${dataDirectory} has ${what}.`)
  if (!secret) say(`The secret was not in the backup: put its file into ${dataDirectory}, or set KIS_SECRET.`)
  say('Start the service, then run `kis verify`.')
}
