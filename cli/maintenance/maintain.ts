import { parseArgs } from 'node:util'
import type { ExportArguments, ImportArguments } from '../portable/commands.ts'
import { acceptLoss } from './accept-loss.ts'
import type { BackupArguments, RestoreArguments } from './backups.ts'
import type { CopyArguments } from './copies.ts'
import { reindex } from './reindex.ts'
import { openService } from './service.ts'
import { verify } from './verify.ts'
import { verifyAll } from './verify-all.ts'

export const MAINTENANCE_USAGE = `kis verify           check the files, the ledger, the stored bytes and the chunk index
    --repair         delete what the index has too much, and restore what it lacks
    --collection ID  the index of one collection only
    --json           lines of JSON instead of text
kis accept-loss LOG  start again without a log of changes that is gone (billing.sqlite-wal)
kis reindex          build the chunk index anew while the service runs, then verify it
    --json           lines of JSON instead of text
kis secret           how far a rotation of the secret is, and which keys are left
    --json           a line of JSON instead of text
kis secret rotate    give the data folder a new secret, which the next start uses
kis secret finish --without-unused-keys
                     revoke the keys and invitations that are left
kis backup FILE      copy the data folder, of a running service too, into one archive
    --since EARLIER  only what has changed since this archive
    --with-secret    with the secret, under the passphrase in KIS_BACKUP_PASSPHRASE
kis restore FILE     put a backup into an empty data folder
    --since EARLIER  an earlier archive that it needs, if it is not beside it; may be repeated, newest first
    --check          read and check everything, and write nothing
kis copy             copy all data of a stopped service to other stores, and compare; run it again if it is interrupted
    --from STORES    embedded:FOLDER (a data folder), or servers (those that KIS_MONGODB_URL and KIS_ELASTICSEARCH_URL name)
    --to STORES      the other of the two, empty
kis export FILE      write one organization, of a running service too, into one archive
    --organization ID
    --with-secrets   with the headers of MCP servers, under the passphrase in KIS_BACKUP_PASSPHRASE
kis import FILE      put an exported organization into another installation; stop the service, unless it is on MongoDB
    --as ID          under another id; new: under one that is made now
    --check          read and check everything, and write nothing`

/** An error in the arguments. */
class Usage extends Error {}

/**
 * Runs a maintenance command, most of them against the running service. Gives the exit code: 0 all in order, 1
 * differences remain, 2 it failed; undefined when the command is unknown.
 */
export async function maintain([command, ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<number | undefined> {
  try {
    if (command === 'verify') {
      const options = verifyOptions(args)
      return await verifyAll(openService(env), options, console)
    }
    if (command === 'reindex') {
      const options = reindexOptions(args)
      const service = openService(env)
      const replaced = await reindex(service, options, console.log)
      return (await verify(service, { ...options, repair: replaced, collectionId: undefined }, console.log)) ? 0 : 1
    }
    if (command === 'accept-loss') {
      if (args.length !== 1) throw new Usage('kis accept-loss takes one name.')
      acceptLoss(args[0]!, env, console.log)
      return 0
    }
    if (command === 'secret') return await secret(args, env)
    if (command === 'backup') {
      const { makeBackup } = await import('./backups.ts')
      await makeBackup(backupArguments(args), env, console.log)
      return 0
    }
    if (command === 'restore') {
      const { restoreBackup } = await import('./backups.ts')
      await restoreBackup(restoreArguments(args), env, console.log)
      return 0
    }
    if (command === 'copy') {
      const { copyStores } = await import('./copies.ts')
      return (await copyStores(copyArguments(args), env, console.log)) ? 0 : 1
    }
    if (command === 'export') {
      const { runExport } = await import('../portable/commands.ts')
      await runExport(exportArguments(args), env, console.log)
      return 0
    }
    if (command === 'import') {
      const { runImport } = await import('../portable/commands.ts')
      await runImport(importArguments(args), env, console.log)
      return 0
    }
    return undefined
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    if (error instanceof Usage) console.error(`\n${MAINTENANCE_USAGE}`)
    return 2
  }
}

async function secret([verb, ...rest]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { finishRotation, rotateSecret, showRotation } = await import('./secret.ts')
  if (verb === 'rotate') {
    if (rest.length > 0) throw new Usage('kis secret rotate takes no arguments.')
    rotateSecret(env, console.log)
    return 0
  }
  if (verb === 'finish') {
    const options = parseOptions(rest, { 'without-unused-keys': { type: 'boolean', default: false } })
    if (!options['without-unused-keys'])
      throw new Usage('kis secret finish revokes keys: repeat it with --without-unused-keys once `kis secret` shows none that you need.')
    const service = openService(env)
    await finishRotation(service, console.log)
    return (await showRotation(service, false, console.log)) ? 0 : 1
  }
  const { json } = parseOptions(verb === undefined ? [] : [verb, ...rest], { json: { type: 'boolean', default: false } })
  return (await showRotation(openService(env), json === true, console.log)) ? 0 : 1
}

function verifyOptions(args: readonly string[]) {
  const { repair, collection, json } = parseOptions(args, {
    repair: { type: 'boolean', default: false },
    collection: { type: 'string' },
    json: { type: 'boolean', default: false },
  })
  return { repair: repair === true, collectionId: collection as string | undefined, json: json === true }
}

function reindexOptions(args: readonly string[]) {
  return { json: parseOptions(args, { json: { type: 'boolean', default: false } }).json === true }
}

function backupArguments(args: readonly string[]): BackupArguments {
  const [file, options] = splitFile('backup', args)
  const { since, 'with-secret': withSecret } = parseOptions(options, {
    since: { type: 'string' },
    'with-secret': { type: 'boolean', default: false },
  })
  return { file, since: since as string | undefined, withSecret: withSecret === true }
}

function restoreArguments(args: readonly string[]): RestoreArguments {
  const [file, options] = splitFile('restore', args)
  const { since, check } = parseOptions(options, {
    since: { type: 'string', multiple: true, default: [] },
    check: { type: 'boolean', default: false },
  })
  return { file, since: since as string[], check: check === true }
}

const EMBEDDED = 'embedded:'
const SERVERS = 'servers'

function copyArguments(args: readonly string[]): CopyArguments {
  const { from, to } = parseOptions(args, { from: { type: 'string' }, to: { type: 'string' } }) as { from?: string; to?: string }
  const sides = [from, to]
  const folder = sides.find((side) => side?.startsWith(EMBEDDED))?.slice(EMBEDDED.length)
  if (!folder || !sides.includes(SERVERS))
    throw new Usage(
      'kis copy takes `--from embedded:FOLDER --to servers`, or `--from servers --to embedded:FOLDER`. From one folder to another, use kis backup and kis restore; ' +
        'from servers to servers, their own means.',
    )
  return { folder, direction: to === SERVERS ? 'to servers' : 'from servers' }
}

function exportArguments(args: readonly string[]): ExportArguments {
  const [file, options] = splitFile('export', args)
  const { organization, 'with-secrets': withSecrets } = parseOptions(options, {
    organization: { type: 'string' },
    'with-secrets': { type: 'boolean', default: false },
  })
  if (typeof organization !== 'string') throw new Usage('kis export takes an organization: --organization org_….')
  return { file, organizationId: organization, withSecrets: withSecrets === true }
}

function importArguments(args: readonly string[]): ImportArguments {
  const [file, options] = splitFile('import', args)
  const { as, check } = parseOptions(options, { as: { type: 'string' }, check: { type: 'boolean', default: false } })
  return { file, as: as as string | undefined, check: check === true }
}

function splitFile(command: string, [file, ...options]: readonly string[]): readonly [string, readonly string[]] {
  if (file === undefined || file.startsWith('-')) throw new Usage(`kis ${command} takes the name of a file first.`)
  return [file, options]
}

function parseOptions(args: readonly string[], options: NonNullable<Parameters<typeof parseArgs>[0]>['options']) {
  try {
    return parseArgs({ args: [...args], options: options!, strict: true }).values
  } catch (error) {
    throw new Usage((error as Error).message)
  }
}
