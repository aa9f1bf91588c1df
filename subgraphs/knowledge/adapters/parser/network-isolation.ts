import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The wait for a test of one way. A working test takes some milliseconds. */
const PROBE_MS = 5_000

/** The ways in order of preference: as root, or as any user if the kernel allows user namespaces. */
const WAYS: readonly (readonly string[])[] = [
  ['unshare', '--net'],
  ['unshare', '--map-root-user', '--net'],
]

let found: Promise<readonly string[]> | undefined

/**
 * Returns the words to put before a command so that it runs without any network, not even loopback. Returns an empty
 * list if the system cannot do this, such as outside Linux and in most containers.
 */
export function networkIsolation(): Promise<readonly string[]> {
  found ??= probe()
  return found
}

async function probe(): Promise<readonly string[]> {
  if (process.platform !== 'linux') return []
  for (const [file, ...args] of WAYS) {
    const works = await promisify(execFile)(file!, [...args, 'true'], { timeout: PROBE_MS }).then(
      () => true,
      () => false,
    )
    if (works) return [file!, ...args]
  }
  return []
}
