import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const CLI = fileURLToPath(new URL('../../cli/kis.js', import.meta.url))

/** Runs a start that is expected to fail, and gives what it said. */
function failing(env: Record<string, string>): Promise<{ code: number; said: string }> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [CLI, 'start'],
      { env: { PATH: process.env.PATH, PORT: '0', ...env }, timeout: 30_000 },
      (error, out, err) => {
        if (error) resolve({ code: Number(error.code), said: out + err })
        else reject(new Error(`it did not fail: ${out}`))
      },
    )
  })
}

it.each([
  { why: 'absent', url: 'mongodb://user:s3cret@127.0.0.1:1/kis', says: 'MongoDB cannot be reached: connect ECONNREFUSED 127.0.0.1:1' },
  { why: 'named by an address that cannot be read', url: 'mongodb://user:s3c/ret@127.0.0.1/kis', says: 'KIS_MONGODB_URL' },
])('a start on a MongoDB that is $why ends and says so, without the password', async ({ url, says }) => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-mongodb-'))
  const { code, said } = await failing({ KIS_DATA_DIR: join(folder, 'data'), KIS_MONGODB_URL: url, KIS_LOG_LEVEL: 'debug' })
  expect([code, said]).toEqual([1, expect.stringContaining(says)])
  expect(said).not.toMatch(/s3c|ret@/)
  rmSync(folder, { recursive: true, force: true })
})
