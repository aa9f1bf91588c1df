import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Service } from './service.ts'

const KIS = fileURLToPath(new URL('../../../cli/kis.js', import.meta.url))

interface Ended {
  /** -1: a signal has ended it. */
  readonly code: number
  readonly lines: readonly string[]
  readonly errors: string
}

/** Runs a `kis` command against a running service, like an operator. */
export function kis(service: Pick<Service, 'graphql'>, key: string, ...args: readonly string[]): Promise<Ended> {
  return launchKis({ KIS_API_KEY: key, KIS_GATEWAY_URL: service.graphql.replace(/\/graphql$/, '') }, ...args).ended
}

/** Starts a `kis` command with these variables alone. */
export function launchKis(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): { readonly ended: Promise<Ended>; kill(): void } {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const child = execFile(process.execPath, [KIS, ...args], { env: { PATH: process.env.PATH ?? '', ...env } }, (error, stdout, stderr) => {
    const code = error ? Number(error.code ?? -1) : 0
    resolve({ code, lines: stdout.split('\n').filter(Boolean), errors: stderr })
  })
  return { ended: promise, kill: () => child.kill('SIGKILL') }
}
