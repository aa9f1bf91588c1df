import { parseArgs } from 'node:util'
import type { ExportArguments, ImportArguments } from '../archive/commands.ts'
import { wrongArguments } from '../settings/usage.ts'
import { acceptLoss } from './accept-loss.ts'
import { reindex } from './reindex.ts'
import { openService } from './service.ts'
import { verify } from './verify.ts'
import { verifyAll } from './verify-all.ts'

/**
 * Runs a maintenance command, most of them against the running service. Returns the exit code: 0 all in order, 1
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
    if (command === 'secret') {
      if (args.join(' ') !== 'rotate') throw wrongArguments('secret', 'kis secret takes `rotate`.')
      const { rotateSecret } = await import('./rotate-secret.ts')
      await rotateSecret(env, console.log)
      return 0
    }
    if (command === 'export') {
      const { runExport } = await import('../archive/commands.ts')
      await runExport(exportArguments(args), env, console.log)
      return 0
    }
    if (command === 'import') {
      const { runImport } = await import('../archive/commands.ts')
      await runImport(importArguments(args), env, console.log)
      return 0
    }
    return undefined
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    return 2
  }
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

function exportArguments(args: readonly string[]): ExportArguments {
  const [file, options] = splitFile('export', args)
  const {
    organization,
    'with-secret': withSecret,
    check,
  } = parseOptions('export', options, {
    organization: { type: 'string' },
    'with-secret': { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  })
  return { file, organizationId: organization as string | undefined, withSecret: withSecret === true, check: check === true }
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
