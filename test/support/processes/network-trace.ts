import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const CALLS = 'connect,sendto,sendmsg,sendmmsg'

/** Matches a line of strace with a destination: an address, or a local service that resolves names. */
const ADDRESS =
  /sa_family=AF_INET6?, sin6?_port=htons\((?<port>\d+)\).*?(?:inet_addr\("(?<v4>[^"]*)"\)|inet_pton\(AF_INET6, "(?<v6>[^"]*)")/
const RESOLVER = /sun_path=@?"[^"]*(?:systemd\.resolve|Resolve|mdns|avahi)/i
const LOOPBACK = /^(?:127\.|(?:::ffff:127\.\d+\.\d+\.\d+|::1)$)/
const DNS_PORTS = new Set(['53', '5353'])

/**
 * Records where a process and its children connect and send to. It covers JavaScript and native libraries, because
 * strace sees system calls.
 */
export class NetworkTrace {
  readonly #file: string
  /**
   * The words before the traced command. The command stays the direct child, receives the signals and gives its own
   * exit code.
   */
  readonly command: readonly string[]

  /** With `unreachable`, every such call fails, and nothing leaves the machine. */
  constructor(file: string, { unreachable = false } = {}) {
    this.#file = file
    const failing = unreachable ? ['-e', `inject=${CALLS}:error=ENETUNREACH`] : []
    this.command = [
      'strace',
      '-D',
      '-f',
      '--seccomp-bpf',
      '-qq',
      '-s',
      '100',
      '-e',
      `trace=${CALLS}`,
      '-e',
      'signal=none',
      ...failing,
      '-o',
      file,
    ]
  }

  get hasBegun(): boolean {
    return existsSync(this.#file)
  }

  /**
   * Returns the calls, as strace writes them, that left loopback or resolved a name, and what was sent on their
   * sockets.
   */
  external(): readonly string[] {
    const sockets = new Set<string>()
    return readFileSync(this.#file, 'utf8')
      .split('\n')
      .filter((line) => {
        const socket = line.match(/\b(?:connect|send\w+)\((\d+),/)?.[1]
        if (socket === undefined) return false
        const { port, v4, v6 } = line.match(ADDRESS)?.groups ?? {}
        const isExternal = port === undefined ? RESOLVER.test(line) : DNS_PORTS.has(port) || !LOOPBACK.test(v4 ?? v6!)
        if (isExternal) sockets.add(socket)
        return isExternal || (port === undefined && sockets.has(socket))
      })
  }
}

/** Returns why this machine cannot trace, or null if it can. */
export function tracingProblem(): string | null {
  const { status, error, stderr } = spawnSync('strace', ['-f', '--seccomp-bpf', '-qq', '-e', 'trace=connect', 'true'], { encoding: 'utf8' })
  if (status === 0) return null
  return error ? 'strace is not installed' : `strace cannot trace here: ${stderr.trim()}`
}
