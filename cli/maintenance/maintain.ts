import { parseArgs } from 'node:util'
import type { ExportArguments, ImportArguments } from '../portable/commands.ts'
import { wrongArguments } from '../settings/usage.ts'
import { acceptLoss } from './accept-loss.ts'
import type { BackupArguments, RestoreArguments } from './backups.ts'
import type { CopyArguments } from './copies.ts'
import { reindex } from './reindex.ts'
import { openService } from './service.ts'
import { verify } from './verify.ts'
import { verifyAll } from './verify-all.ts'

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
      if (args.length !== 1) throw wrongArguments('accept-loss', 'kis accept-loss takes one name.')
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
    return 2
  }
}

async function secret([verb, ...rest]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { finishRotation, rotateSecret, showRotation } = await import('./secret.ts')
  if (verb === 'rotate') {
    if (rest.length > 0) throw wrongArguments('secret', 'kis secret rotate takes no arguments.')
    rotateSecret(env, console.log)
    return 0
  }
  if (verb === 'finish') {
    const options = parseOptions('secret', rest, { 'without-unused-keys': { type: 'boolean', default: false } })
    if (!options['without-unused-keys'])
      throw wrongArguments(
        'secret',
        'kis secret finish revokes keys: repeat it with --without-unused-keys once `kis secret` shows none that you need.',
      )
    const service = openService(env)
    await finishRotation(service, console.log)
    return (await showRotation(service, false, console.log)) ? 0 : 1
  }
  const { json } = parseOptions('secret', verb === undefined ? [] : [verb, ...rest], { json: { type: 'boolean', default: false } })
  return (await showRotation(openService(env), json === true, console.log)) ? 0 : 1
}

function verifyOptions(args: readonly string[]) {
  const { repair, collection, json } = parseOptions('verify', args, {
    repair: { type: 'boolean', default: false },
    collection: { type: 'string' },
    json: { type: 'boolean', default: false },
  })
  return { repair: repair === true, collectionId: collection as string | undefined, json: json === true }
}

function reindexOptions(args: readonly string[]) {
  return { json: parseOptions('reindex', args, { json: { type: 'boolean', default: false } }).json === true }
}

function backupArguments(args: readonly string[]): BackupArguments {
  const [file, options] = splitFile('backup', args)
  const { since, 'with-secret': withSecret } = parseOptions('backup', options, {
    since: { type: 'string' },
    'with-secret': { type: 'boolean', default: false },
  })
  return { file, since: since as string | undefined, withSecret: withSecret === true }
}

function restoreArguments(args: readonly string[]): RestoreArguments {
  const [file, options] = splitFile('restore', args)
  const { since, check } = parseOptions('restore', options, {
    since: { type: 'string', multiple: true, default: [] },
    check: { type: 'boolean', default: false },
  })
  return { file, since: since as string[], check: check === true }
}

const EMBEDDED = 'embedded:'
const SERVERS = 'servers'

function copyArguments(args: readonly string[]): CopyArguments {
  const { from, to } = parseOptions('copy', args, { from: { type: 'string' }, to: { type: 'string' } }) as { from?: string; to?: string }
  const sides = [from, to]
  const folder = sides.find((side) => side?.startsWith(EMBEDDED))?.slice(EMBEDDED.length)
  if (!folder || !sides.includes(SERVERS))
    throw wrongArguments(
      'copy',
      'kis copy takes `--from embedded:FOLDER --to servers`, or `--from servers --to embedded:FOLDER`. From one folder to another, use kis backup and kis restore; ' +
        'from servers to servers, their own means.',
    )
  return { folder, direction: to === SERVERS ? 'to servers' : 'from servers' }
}

function exportArguments(args: readonly string[]): ExportArguments {
  const [file, options] = splitFile('export', args)
  const { organization, 'with-secrets': withSecrets } = parseOptions('export', options, {
    organization: { type: 'string' },
    'with-secrets': { type: 'boolean', default: false },
  })
  if (typeof organization !== 'string') throw wrongArguments('export', 'kis export takes an organization: --organization org_….')
  return { file, organizationId: organization, withSecrets: withSecrets === true }
}

function importArguments(args: readonly string[]): ImportArguments {
  const [file, options] = splitFile('import', args)
  const { as, check } = parseOptions('import', options, { as: { type: 'string' }, check: { type: 'boolean', default: false } })
  return { file, as: as as string | undefined, check: check === true }
}

function splitFile(command: string, [file, ...options]: readonly string[]): readonly [string, readonly string[]] {
  if (file === undefined || file.startsWith('-')) throw wrongArguments(command, `kis ${command} takes the name of a file first.`)
  return [file, options]
}

function parseOptions(command: string, args: readonly string[], options: NonNullable<Parameters<typeof parseArgs>[0]>['options']) {
  try {
    return parseArgs({ args: [...args], options: options!, strict: true }).values
  } catch (error) {
    throw wrongArguments(command, (error as Error).message)
  }
}
