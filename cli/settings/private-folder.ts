import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Files that the service itself puts into a data folder. */
const OWN_FILE =
  /^(?:secret(?:\.next)?|[a-z]+\.sqlite(?:-wal|-shm|-journal)?|[a-z]+\.sqlite\.lock(?:-journal)?|[a-z]+\.sqlite\.(?:unreadable|before)-[\dTZ-]+(?:-wal|\.part)?)$/
const GROUP_AND_OTHERS = 0o077

/**
 * Makes every new folder and file of this process private to its user: they hold texts, sealed secrets and the ledger.
 * Call it before any thread starts. It also closes an existing data folder, or only our own files if the folder holds
 * others. Gives what other users of this machine can still read. Does nothing on Windows, which has no such modes.
 */
export function restrictPermissions(folder: string): readonly string[] {
  if (process.platform === 'win32') return []
  process.umask(GROUP_AND_OTHERS)
  const names = namesIn(folder)
  if (names === null) return []
  const own = names.filter((name) => OWN_FILE.test(name))
  const open = own.map((name) => join(folder, name)).filter((file) => !isClosed(file, 0o600))
  const isOurs = own.length === names.length
  return isClosed(folder, isOurs ? 0o700 : null) ? open : [folder, ...open]
}

/** Null: the path does not exist or cannot be read. The stores report this when they open. */
function namesIn(folder: string): readonly string[] | null {
  try {
    return readdirSync(folder)
  } catch {
    return null
  }
}

/**
 * Sets `mode` (null: leaves it), and gives whether others are kept out. A file may vanish meanwhile: SQLite removes
 * some.
 */
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
