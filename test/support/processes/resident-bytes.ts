import { readFileSync } from 'node:fs'

/** What the process has in memory; null where the system does not say (only Linux does). */
export function residentBytes(pid: number): number | null {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
  } catch {
    return null
  }
}
