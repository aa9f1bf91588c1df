import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CHILD_HEAP_MB } from './limits.ts'

/**
 * Seconds of processor time after which the system itself ends a child. Parsing ends long before; this is for children
 * whose parent is gone.
 */
const CHILD_CPU_SECONDS = 150

/**
 * The command line of a child: this Node, allowed to read the parser's own code and the packages it uses; no writing,
 * no processes, no workers, no native code, no code from strings. What the system can limit beyond goes in front of it:
 * `ulimit`, and `isolation`.
 */
export function childCommand(
  isolation: readonly string[],
  code = new URL('./readers/child.ts', import.meta.url),
): { readonly file: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const readable = ['./', '../../domain/', '../../ports/', '../../../../node_modules/', '../../../../package.json'].flatMap((path) => {
    // Node asks by the name that it was given and by the one behind links.
    const named = fileURLToPath(new URL(path, import.meta.url))
    return [named, realpathSync(named)]
  })
  const node = [
    process.execPath,
    '--permission',
    ...new Set(readable.map((path) => `--allow-fs-read=${path}`)),
    '--disallow-code-generation-from-strings',
    `--max-old-space-size=${CHILD_HEAP_MB}`,
    '--no-warnings',
    fileURLToPath(code),
  ] as const
  if (process.platform === 'win32') return { file: node[0], args: node.slice(1), env: {} }
  const args = ['-c', `ulimit -t ${CHILD_CPU_SECONDS}; exec "$@"`, 'sh', ...isolation, ...node]
  // Where the shell finds `unshare`; of the service's own environment the child gets nothing.
  return { file: '/bin/sh', args, env: isolation.length > 0 ? { PATH: process.env.PATH ?? '' } : {} }
}
