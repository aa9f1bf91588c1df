import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Length of a tick in procfs: USER_HZ is 100 on every Linux that Node runs on (proc(5)). */
const MS_PER_TICK = 10

/**
 * CPU time in ms of a process, its threads, its living descendants and those of its children that have ended. Unlike wall time it hardly
 * depends on what else the machine does. @throws {Error} the system has no procfs.
 */
export function cpuMsOfTree(pid: number): number {
  if (!existsSync('/proc/self/stat')) throw new Error('CPU time is read from /proc, which only Linux has.')
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)) ?? [])
  const inTree = new Set([pid])
  // Children have been found when a round adds none; parents may have greater ids than their children.
  for (let size = 0; size !== inTree.size; ) {
    size = inTree.size
    for (const stat of stats) if (inTree.has(stat.parent)) inTree.add(stat.pid)
  }
  return stats.filter((stat) => inTree.has(stat.pid)).reduce((sum, { ticks }) => sum + ticks, 0) * MS_PER_TICK
}

interface Stat {
  readonly pid: number
  readonly parent: number
  /** utime, stime, and both of the children that were waited for: fields 14 to 17 of proc(5). */
  readonly ticks: number
}

/** Undefined: it has just ended. */
function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the command in brackets, which may hold spaces; the third is first here.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid, parent: Number(fields[1]), ticks: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) }
  } catch {
    return undefined
  }
}
