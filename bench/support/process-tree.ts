import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** The tick of procfs: USER_HZ is 100 on every Linux that Node runs on (proc(5)). */
const MS_PER_TICK = 10
/** The page size of every Linux that Node runs on, except some arm64 with pages of 64 KB. */
const BYTES_PER_PAGE = 4_096

/**
 * Returns the CPU time in ms of a process, its threads, its living descendants, and its children that have ended.
 * Unlike wall time it hardly depends on other load.
 * @throws {Error} the system has no procfs
 */
export function cpuMsOfTree(pid: number): number {
  return readTree(pid).reduce((sum, { ticks }) => sum + ticks, 0) * MS_PER_TICK
}

/**
 * Returns the resident memory in bytes of a process and its living descendants. Shared pages count in each.
 * @throws {Error} the system has no procfs
 */
export function residentBytesOfTree(pid: number): number {
  return readTree(pid).reduce((sum, { pages }) => sum + pages, 0) * BYTES_PER_PAGE
}

/**
 * Returns the resident memory in bytes of a process alone.
 * @throws {Error} the system has no procfs
 */
export function residentBytes(pid: number): number {
  return readTree(pid).find((stat) => stat.pid === pid)!.pages * BYTES_PER_PAGE
}

/** Kills every descendant of this process, however it was started. */
export function killDescendants(): void {
  for (const { pid } of readTree(process.pid)) {
    if (pid === process.pid) continue
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // The process has just ended by itself.
    }
  }
}

/**
 * Returns how long the process's main thread has run, and how long it was ready to run and waited for a core, in ms.
 */
export function schedulingOf(pid: number): { readonly ranMs: number; readonly waitedMs: number } {
  const [ran, waited] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ').map(Number) as [number, number]
  return { ranMs: ran / 1e6, waitedMs: waited / 1e6 }
}

interface Stat {
  readonly pid: number
  readonly parent: number
  /** User and system time, and both of the children that were waited for: fields 14 to 17 in proc(5). */
  readonly ticks: number
  /** Resident memory: field 24. */
  readonly pages: number
}

/** Returns a process and its living descendants. */
function readTree(pid: number): readonly Stat[] {
  if (!existsSync('/proc/self/stat')) throw new Error('CPU time and memory are read from /proc, which only Linux has.')
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? [])
  const inTree = new Set([pid])
  // Repeat until a round adds none: a parent may have a greater ID than its child.
  for (let size = 0; size !== inTree.size; ) {
    size = inTree.size
    for (const stat of stats) if (inTree.has(stat.parent)) inTree.add(stat.pid)
  }
  return stats.filter((stat) => inTree.has(stat.pid))
}

/** Returns undefined if the process has just ended. */
function readStat(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the command in brackets, which may contain spaces. Parsing starts with the third.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { pid, parent: Number(fields[1]), ticks, pages: Number(fields[21]) }
  } catch {
    return undefined
  }
}
