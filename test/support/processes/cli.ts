import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Service } from './service.ts'

const KIS = fileURLToPath(new URL('../../../cli/kis.js', import.meta.url))

/** Runs a `kis` command against a running service, like an operator. */
export async function kis(
  service: Pick<Service, 'graphql'>,
  key: string,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly lines: readonly string[]; readonly errors: string }> {
  const env = { PATH: process.env.PATH ?? '', KIS_API_KEY: key, KIS_GATEWAY_URL: service.graphql.replace(/\/graphql$/, '') }
  return new Promise((resolve) => {
    execFile(process.execPath, [KIS, ...args], { env }, (error, stdout, stderr) => {
      const code = error ? Number(error.code ?? -1) : 0
      resolve({ code, lines: stdout.split('\n').filter(Boolean), errors: stderr })
    })
  })
}
