import { readFileSync } from 'node:fs'

/** How often the parent is checked. */
const POLL_MS = 500

/**
 * npm starts a script through a shell and sends its signals only to that shell; when npm is killed by SIGKILL, it sends
 * none. If the shell stays in between (Debian's does, bash does not), the service would not notice that npm has ended.
 */
const parent = process.ppid
const npm = isShellOfNpm(parent) ? findParent(parent) : null

/**
 * Calls back once, when the npm that started this process has ended. Never without npm, nor on Windows, where a process
 * cannot see that its parent has ended.
 */
export function whenNpmIsGone(callback: () => void): void {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return
  const timer = setInterval(() => {
    if (process.ppid === parent && (npm === null || findParent(parent) === npm)) return
    clearInterval(timer)
    callback()
  }, POLL_MS).unref()
}

/** npm sets its variables in the environment of its shell, not in its own. */
function isShellOfNpm(pid: number): boolean {
  return readProc(pid, 'environ').includes('npm_lifecycle_event=')
}

function findParent(pid: number): number | null {
  // `pid (name) state parent …`. The name may contain spaces and brackets.
  return Number(readProc(pid, 'stat').split(') ').at(-1)?.split(' ')[1]) || null
}

/** Empty without /proc, as on macOS, and after the process has ended. */
function readProc(pid: number, file: 'environ' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}
