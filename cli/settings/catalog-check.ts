import { resolve } from 'node:path'
import { CatalogError, type CatalogFile, readCatalogFile } from '../../subgraphs/inference/domain/catalog/catalog-file.ts'
import type { EngineEntry } from '../../subgraphs/inference/domain/catalog/engine.ts'
import type { ModelEntry } from '../../subgraphs/inference/domain/catalog/model.ts'
import { wrongArguments } from './usage.ts'
import { readPaths } from './variables.ts'

/** Runs `kis catalog check`. Gives the exit code; undefined for another command. @throws {UsageError} */
export function catalogCheck([command, verb, file, ...others]: readonly string[], env: NodeJS.ProcessEnv): number | undefined {
  if (command !== 'catalog') return undefined
  if (verb !== 'check' || others.length > 0) throw wrongArguments('catalog', 'kis catalog takes `check` and at most one file.')
  const { code, lines } = checkCatalog(file, env)
  for (const line of lines) console[code === 0 ? 'log' : 'error'](line)
  return code
}

/**
 * Prints the catalog's contents and gives 0, or prints every problem that keeps the service from starting and gives 1.
 * An engine that is off is no problem.
 */
export function checkCatalog(
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): { readonly code: 0 | 1; readonly lines: readonly string[] } {
  try {
    return { code: 0, lines: toLines(readCatalogFile(file ? resolve(file) : readPaths(env).KIS_CATALOG, env)) }
  } catch (error) {
    if (error instanceof CatalogError) return { code: 1, lines: error.problems }
    throw error
  }
}

function toLines({ engines, models }: Pick<CatalogFile, 'engines' | 'models'>): readonly string[] {
  const widest = Math.max(0, ...engines.map(({ name }) => name.length), ...models.map(({ id }) => id.length + 2))
  const line = (name: string, ...facts: readonly string[]) => [name.padEnd(widest), ...facts].join('  ')
  return engines.flatMap((engine) => {
    const own = models.filter((model) => model.engine === engine.name)
    return [
      line(engine.name, describeState(engine), `${engine.kind}, ${engine.badge}${own.length > 0 ? '' : ', without models'}`),
      ...own.map((model) => line(`  ${model.id}`, engine.on ? 'on' : `off: its engine is off`, describeModel(model))),
    ]
  })
}

function describeModel({ kind, aliases, fallbacks }: ModelEntry): string {
  return [kind, ...aliases.map((alias) => `alias ${alias}`), ...fallbacks.map((id) => `falls back to ${id}`)].join(', ')
}

/** Names the settings but not their values, which may be keys. */
function describeState({ on, missing }: EngineEntry): string {
  return on ? 'on' : `off: ${missing.map((setting) => `\`${setting}\``).join(' and ')} came out empty`
}
