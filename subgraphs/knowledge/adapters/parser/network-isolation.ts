import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Asking takes some milliseconds; a machine that cannot answer has none. */
const ASK_MS = 5_000

/** In the order of preference: as root, or as anybody where the kernel lets them make namespaces of users. */
const WAYS: readonly (readonly string[])[] = [
  ['unshare', '--net'],
  ['unshare', '--map-root-user', '--net'],
]

let found: Promise<readonly string[]> | undefined

/**
 * What goes before a command so that it runs in a namespace without a network, not even loopback; empty where that
 * cannot be had: outside Linux, in most containers.
 */
export function networkIsolation(): Promise<readonly string[]> {
  found ??= ask()
  return found
}

async function ask(): Promise<readonly string[]> {
  if (process.platform !== 'linux') return []
  for (const [file, ...args] of WAYS) {
    const works = await promisify(execFile)(file!, [...args, 'true'], { timeout: ASK_MS }).then(
      () => true,
      () => false,
    )
    if (works) return [file!, ...args]
  }
  return []
}
