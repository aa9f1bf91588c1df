import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** What the service itself puts into a data folder. */
const OWN_FILE =
  /^(?:secret|[a-z]+\.sqlite(?:-wal|-shm|-journal)?|[a-z]+\.sqlite\.lock(?:-journal)?|[a-z]+\.sqlite\.(?:unreadable|before)-[\dTZ-]+(?:-wal|\.part)?)$/
const GROUP_AND_OTHERS = 0o077

/**
 * From here on this process makes folders that only its user enters, and files that only he reads: texts, sealed secrets, the ledger. To be called
 * before any thread starts. A data folder of an earlier start is mended, unless it also holds something else: then only our files are. Gives what
 * is still open to others of this machine. Windows has no such modes.
 */
export function keepPrivate(folder: string): readonly string[] {
  if (process.platform === 'win32') return []
  process.umask(GROUP_AND_OTHERS)
  const names = namesIn(folder)
  if (names === null) return []
  const own = names.filter((name) => OWN_FILE.test(name))
  const open = own.map((name) => join(folder, name)).filter((file) => !isClosed(file, 0o600))
  const isOurs = own.length === names.length
  return isClosed(folder, isOurs ? 0o700 : null) ? open : [folder, ...open]
}

/** Null: the path does not exist, or cannot be read; then the stores report it when they open. */
function namesIn(folder: string): readonly string[] | null {
  try {
    return readdirSync(folder)
  } catch {
    return null
  }
}

/** Closes it with `mode` (null: leaves it) and says whether it is closed to others. A file may be gone by then: SQLite has removed it. */
function isClosed(path: string, mode: number | null): boolean {
  const bits = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  if ((bits & GROUP_AND_OTHERS) === 0) return true
  if (mode === null) return false
  try {
    chmodSync(path, mode)
    return true
  } catch {
    return false
  }
}
