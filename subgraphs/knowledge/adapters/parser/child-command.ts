import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CHILD_HEAP_MB } from './limits.ts'

/**
 * Returns the command line of a child process. It runs this Node, which may read the parser's code and its packages. It
 * may not write files, start processes or workers, load native code or run code from strings. `ulimit` and `isolation`
 * precede the command and add limits of the operating system. After `cpuSeconds` of processor time, the system ends a
 * child whose parent is gone.
 */
export function childCommand(
  isolation: readonly string[],
  cpuSeconds: number,
  code = new URL('./readers/child.ts', import.meta.url),
): { readonly file: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const readable = [
    './',
    '../../domain/',
    '../../ports/',
    '../../../common/sizes.ts',
    '../../../../node_modules/',
    '../../../../package.json',
  ].flatMap((path) => {
    // Node checks both the given path and the path behind symbolic links.
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
  const args = ['-c', `ulimit -t ${cpuSeconds}; exec "$@"`, 'sh', ...isolation, ...node]
  // The shell needs `PATH` to find `unshare`. The child gets nothing else of the service's environment.
  return { file: '/bin/sh', args, env: isolation.length > 0 ? { PATH: process.env.PATH ?? '' } : {} }
}
