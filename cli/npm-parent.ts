import { readFileSync } from 'node:fs'

/** How often it looks. */
const LOOK_MS = 500

/**
 * npm starts a script by a shell, gives its own signals to that shell and none to what runs in it; and killed by SIGKILL it gives none at all.
 * Under a shell that stays between (Debian's does, bash does not), nobody would tell the service that it has been ended.
 */
const parent = process.ppid
const npm = isShellOfNpm(parent) ? parentOf(parent) : null

/** Calls back once, when the npm that started this process has ended. Without npm it never does. On Windows a process cannot see that its parent has ended. */
export function whenNpmIsGone(callback: () => void): void {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return
  const timer = setInterval(() => {
    if (process.ppid === parent && (npm === null || parentOf(parent) === npm)) return
    clearInterval(timer)
    callback()
  }, LOOK_MS).unref()
}

/** npm's variables are in the environment of its shell and not in its own. */
function isShellOfNpm(pid: number): boolean {
  return readOf(pid, 'environ').includes('npm_lifecycle_event=')
}

function parentOf(pid: number): number | null {
  // `pid (name) state parent …`; the name may have spaces and brackets.
  return Number(readOf(pid, 'stat').split(') ').at(-1)?.split(' ')[1]) || null
}

/** Empty where there is no /proc, as on macOS, and once the process is gone. */
function readOf(pid: number, file: 'environ' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}
