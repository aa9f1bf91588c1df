import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../subgraphs/common/errors.ts'
import type { Config } from './config.ts'
import { ROLES, type Role } from './roles.ts'
import { wrongArguments } from './usage.ts'
import { readPaths } from './variables.ts'

/** Stands for the secret that a first start would create. It signs nothing here. */
const PLACEHOLDER_SECRET = 'x'.repeat(32)

/** Runs `kis config check`. Returns the exit code; undefined for another command. @throws {UsageError} */
export async function configCheck(
  [command, verb, role, ...others]: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number | undefined> {
  if (command !== 'config') return undefined
  if (verb !== 'check' || others.length > 0 || (role !== undefined && !ROLES.includes(role as Role)))
    throw wrongArguments('config', `kis config takes \`check\` and at most one role: ${ROLES.join(', ')}.`)
  const { code, lines } = await checkConfig(role as Role | undefined, env)
  for (const line of lines) console[code === 0 ? 'log' : 'error'](line)
  return code
}

/**
 * Prints the effective configuration and returns 0, or prints every problem and returns 1. Writes nothing, and connects
 * to nothing.
 */
export async function checkConfig(
  role: Role | undefined,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly code: 0 | 1; readonly lines: readonly string[] }> {
  // Imported here, because no other command needs what it loads.
  const { readConfig } = await import('./config.ts')
  try {
    return { code: 0, lines: describe(readConfig(isFirstStart(role, env) ? { ...env, KIS_SECRET: PLACEHOLDER_SECRET } : env, role)) }
  } catch (error) {
    if (error instanceof ConfigError) return { code: 1, lines: error.problems }
    throw error
  }
}

/**
 * Whether no data folder exists yet: reading the configuration of a whole service would create the folder and its
 * secret.
 */
function isFirstStart(role: Role | undefined, env: NodeJS.ProcessEnv): boolean {
  return role === undefined && !env.KIS_SECRET && !env.KIS_SECRET_FILE && !existsSync(join(readPaths(env).KIS_DATA_DIR, 'secret'))
}

/** Describes the configuration without any value that may hold a password. */
function describe({ dataDirectory, settings, portal, ignored }: Config): readonly string[] {
  const { catalog, knowledge, oidc } = settings
  const on = catalog.engines.filter((engine) => engine.on).length
  return [
    'The configuration is valid.',
    `data       ${knowledge.mongodb ? 'MongoDB' : dataDirectory}${knowledge.elasticsearch ? ', Elasticsearch' : ''}`,
    `catalog    ${on} of ${catalog.engines.length} engines on (kis catalog check)`,
    `sign-in    ${oidc ? `by key, and by ${oidc.name}` : 'by key'}`,
    `portal     ${portal ? 'on' : 'off'}`,
    ...ignored,
  ]
}
