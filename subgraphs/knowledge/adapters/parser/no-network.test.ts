import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { childCommand } from './child-command.ts'
import { networkIsolation } from './network-isolation.ts'

const ESCAPES = new URL('./test-support/escapes.ts', import.meta.url)
/** Attempts that need a network. undici is only loaded. */
const BY_NETWORK = ['net', 'net without a scheme', 'http', 'fetch', 'the socket of standard input', 'getBuiltinModule', 'createRequire']

describe('Network isolation of the parser process', () => {
  let connections = 0
  const outside = createServer((socket) => {
    connections += 1
    socket
      .on('error', () => undefined)
      .resume()
      .end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  })
  beforeAll(() => once(outside.listen(0, '127.0.0.1'), 'listening'))
  afterAll(() => new Promise((resolve) => outside.close(resolve)))

  async function runEscapes(isolation: readonly string[], isGuarded: boolean): Promise<Record<string, string>> {
    const { file, args, env } = childCommand(isolation, 60, ESCAPES)
    return new Promise((resolve, reject) => {
      const child = execFile(file, args, { env }, (error, stdout, stderr) => {
        if (error) reject(new Error(stderr, { cause: error }))
        else resolve(JSON.parse(stdout))
      })
      child.stdin!.end(JSON.stringify({ port: (outside.address() as AddressInfo).port, isGuarded }))
    })
  }
  const ways = (outcomes: Record<string, string>) => Object.keys(outcomes).filter((name) => outcomes[name] === 'OUT')

  it('blocks every escape by what it can load, even on a system without namespaces', async () => {
    connections = 0
    const outcomes = await runEscapes([], true)
    expect(Object.keys(outcomes).length).toBeGreaterThan(20)
    expect([ways(outcomes), connections]).toEqual([[], 0])
  }, 60_000)

  it('has no network in its namespace, whatever it loads', async ({ skip }) => {
    const isolation = await networkIsolation()
    if (isolation.length === 0) skip('this machine makes no network namespaces')
    connections = 0
    const outcomes = await runEscapes(isolation, false)
    expect([ways(outcomes).filter((name) => BY_NETWORK.includes(name)), connections]).toEqual([[], 0])
  }, 60_000)

  it('reaches the network without both: the permission model of Node does not block it', async () => {
    connections = 0
    expect(ways(await runEscapes([], false))).toEqual(expect.arrayContaining(BY_NETWORK))
    expect(connections).toBeGreaterThanOrEqual(BY_NETWORK.length)
  }, 60_000)
})
