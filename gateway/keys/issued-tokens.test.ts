import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { IssuedTokens } from './issued-tokens.ts'

const RESOURCE = 'https://kis.example/mcp'

/** Starts an issuer that publishes `keys`, and records its requests. */
async function startIssuer(keys: unknown) {
  const requests: string[] = []
  const server = createServer(({ url = '' }, response) => {
    requests.push(url)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(url === '/keys' ? keys : { issuer, jwks_uri: `${issuer}/keys` }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { issuer, requests, tokens: new IssuedTokens({ issuer, resource: RESOURCE, keyClaim: 'key_id' }, systemClock) }
}

const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
const sign = (claims: object) =>
  new SignJWT({ aud: RESOURCE, key_id: 'key_1', ...claims }).setProtectedHeader({ alg: 'ES256' }).setExpirationTime('5m').sign(privateKey)

it('verifies a token with the keys of its issuer', async () => {
  const { issuer, tokens } = await startIssuer({ keys: [await exportJWK(publicKey)] })
  expect(await tokens.read(await sign({ iss: issuer }))).toEqual({ apiKeyId: 'key_1', scopes: null })
  await expect(tokens.read(await sign({ iss: issuer, aud: 'https://elsewhere.example' }))).rejects.toMatchObject({
    code: 'invalid_api_key',
  })
})

it('makes no request to the issuer for a text that does not name it', async () => {
  const { issuer, requests, tokens } = await startIssuer({ keys: [] })
  const [, payload] = (await sign({ iss: issuer })).split('.')
  const header = (alg: string) => Buffer.from(JSON.stringify({ alg })).toString('base64url')
  for (const text of [
    'a.b.c',
    await sign({ iss: 'https://elsewhere.example' }),
    `${header('none')}.${payload}.x`,
    `${header('HS256')}.${payload}.x`,
    `${header('ES256')}.${header('ES256')}.x`,
  ])
    await expect(tokens.read(text)).rejects.toMatchObject({ code: 'invalid_api_key' })
  expect(requests).toEqual([])
})

for (const [what, keys] of [
  ['an error', { error: 'down' }],
  ['a value that is not an object', null],
  ['a malformed list', { keys: 'none' }],
] as const)
  it(`blames the issuer, and not the token, for keys that are ${what}`, async () => {
    const { issuer, tokens } = await startIssuer(keys)
    await expect(tokens.read(await sign({ iss: issuer }))).rejects.toMatchObject({ code: 'service_unavailable' })
  })
