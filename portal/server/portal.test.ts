import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import fastify from 'fastify'
import { pino } from 'pino'
import { describe, expect, it, onTestFinished } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import type { Builder } from './build-bundle.ts'
import { openPortal } from './portal.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

/** Copies `web/` as a build tool would, and notes that in a file of its own. */
const COPY = `
const { cpSync, appendFileSync, existsSync } = require('node:fs')
const [folder, out] = process.argv.slice(1)
appendFileSync(folder + '/.builds', Object.keys(process.env).join() + '\\n')
if (existsSync(folder + '/web/broken')) { console.error('web/broken is broken'); process.exit(1) }
cpSync(folder + '/web', out, { recursive: true })
`
const copying: Builder = (folder, out) => [process.execPath, '-e', COPY, folder, out]
/** Copies when the file `go` exists beside the portal. */
const WAIT = `
const look = setInterval(() => {
  if (!require('node:fs').existsSync(process.argv[1] + '/../go')) return
  clearInterval(look)
  ${COPY}
}, 10)
`
const waiting: Builder = (folder, out) => [process.execPath, '-e', WAIT, folder, out]

/** Creates the folder of a tiny portal, with files as the build writes them. */
function createFolder(name = 'portal'): string {
  const root = mkdtempSync(join(tmpdir(), 'kis-portal-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const folder = join(root, name)
  mkdirSync(join(folder, 'web/assets'), { recursive: true })
  writeFileSync(
    join(folder, 'web/index.html'),
    '<!doctype html><html lang="en" dir="ltr"><script type="module" src="/assets/a-1.js"></script></html>',
  )
  writeFileSync(join(folder, 'web/assets/a-1.js'), 'export {}')
  writeFileSync(join(folder, 'web/assets/a-1.js.gz'), gzipSync('export {}'))
  writeFileSync(join(folder, 'web/assets/a-1.js.br'), 'as brotli')
  writeFileSync(join(folder, 'web/assets/font-2.woff2'), 'font')
  writeFileSync(join(folder, 'web/assets/page.exe'), 'no')
  return folder
}

async function serve(folder: string, builder: Builder = copying, publicUrl: string | null = null) {
  const logged: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) })
  const portal = openPortal({ folder, log, builder, publicUrl })!
  const app = fastify()
  portal.register(app)
  app.get('/', async () => ({ api: true }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  onTestFinished(async () => {
    await portal[Symbol.asyncDispose]()
    await app.close()
  })
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    new Promise<{ status: number; headers: Record<string, string | string[] | undefined>; bytes: Buffer }>((resolve, reject) => {
      const sent = request({ port, host: '127.0.0.1', path, method, headers }, (response) => {
        const pieces: Buffer[] = []
        response.on('data', (piece) => pieces.push(piece))
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, bytes: Buffer.concat(pieces) }))
      })
      sent.on('error', reject).end()
    })
  return { portal, get, logged }
}

const builds = (folder: string) => readFileSync(join(folder, '.builds'), 'utf8').trim().split('\n')

describe('Portal build', () => {
  it('runs in the background, and the page says so in the language of the reader', async () => {
    const folder = createFolder()
    const { portal, get } = await serve(folder, waiting)
    for (const [language, direction] of [
      ['en', 'ltr'],
      ['ar', 'rtl'],
    ] as const) {
      const { status, headers, bytes } = await get('/', { ...BROWSER, 'accept-language': `${language},fr;q=0.5` })
      const text = String(bytes)
      expect([status, headers['cache-control'], headers['retry-after']]).toEqual([503, 'no-store', '2'])
      expect(text).toContain(`<html lang="${language}" dir="${direction}">`)
      expect(text).toContain('<meta http-equiv="refresh" content="2">')
    }
    expect((await get('/assets/a-1.js')).status).toBe(404)
    expect((await get('/')).status).toBe(200)
    writeFileSync(join(folder, '../go'), '')
    await portal.settled
    const { status, bytes } = await get('/', BROWSER)
    expect([status, String(bytes)]).toEqual([200, expect.stringContaining('/assets/a-1.js')])
    expect(readdirSync(folder).filter((name) => name.startsWith('dist'))).toEqual(['dist'])
  })

  it('passes no secrets of the service to the build tools', async () => {
    process.env.KIS_TEST_OF_PORTAL = 'secret'
    onTestFinished(() => void delete process.env.KIS_TEST_OF_PORTAL)
    const folder = createFolder()
    await (await serve(folder)).portal.settled
    expect(
      builds(folder)[0]!
        .split(',')
        .filter((name) => name.startsWith('KIS')),
    ).toEqual([])
  })

  it('runs again when a source or a package changes, and only then', async () => {
    const folder = createFolder()
    const open = async () => (await serve(folder)).portal.settled
    await open()
    await open()
    expect(builds(folder)).toHaveLength(1)
    writeFileSync(join(folder, 'web/assets/b-1.js'), '')
    await open()
    writeFileSync(join(folder, '../package-lock.json'), '{}')
    await open()
    await open()
    expect(builds(folder)).toHaveLength(3)
  })

  it('is served by a process even if another one replaces it', async () => {
    const folder = createFolder()
    // Deletes `dist/` as soon as it exists, as a second process does right before it moves its own there.
    const removing = setInterval(() => rmSync(join(folder, 'dist'), { recursive: true, force: true }), 0)
    onTestFinished(() => clearInterval(removing))
    const { portal, get } = await serve(folder)
    await portal.settled
    expect((await get('/', BROWSER)).status).toBe(200)
  })

  it('is served as shipped without sources, as in the image', async () => {
    const folder = createFolder()
    await (await serve(folder)).portal.settled
    rmSync(join(folder, 'web'), { recursive: true })
    writeFileSync(join(folder, 'more.txt'), '')
    const { portal, get } = await serve(folder, () => null)
    await portal.settled
    expect((await get('/', BROWSER)).status).toBe(200)
  })

  it('reports a failure, and logs the reason', async () => {
    const folder = createFolder()
    writeFileSync(join(folder, 'web/broken'), '')
    const { portal, get, logged } = await serve(folder)
    await portal.settled
    const { status, bytes } = await get('/', BROWSER)
    expect([status, String(bytes)]).toEqual([503, expect.stringContaining('could not be built')])
    expect(String(bytes)).not.toContain('refresh')
    expect(logged.join()).toContain('web/broken is broken')
    expect(readdirSync(folder).filter((name) => name.startsWith('dist'))).toEqual([])
  })

  it('explains how to build when the tools are not installed', async () => {
    const { portal, get } = await serve(createFolder(), () => null)
    await portal.settled
    expect(String((await get('/home', BROWSER)).bytes)).toContain('npm run portal:build')
  })

  it('the portal is disabled without a bundle and sources', () => {
    const folder = createFolder()
    rmSync(join(folder, 'web'), { recursive: true })
    expect(openPortal({ folder, log: silentLog })).toBeNull()
  })

  it('stops when the service stops', async () => {
    const folder = createFolder()
    const { portal, logged } = await serve(folder, () => [process.execPath, '-e', 'setInterval(() => {}, 1000)'])
    await portal[Symbol.asyncDispose]()
    expect(logged).toEqual([])
  })
})

describe('Portal responses', () => {
  async function built() {
    const served = await serve(createFolder())
    await served.portal.settled
    return served
  }

  it('serve the page at all its paths to browsers, and not to API clients', async () => {
    const { get } = await built()
    for (const path of ['/', '/home', '/collections/col_1/documents?a=1', '/sign-in']) expect((await get(path, BROWSER)).status).toBe(200)
    for (const path of ['/homes', '/v1/models', '/graphql', '/docs', '/assets', '//home', '/HOME'])
      expect((await get(path, BROWSER)).status).toBe(404)
    for (const accept of ['application/json', '*/*', '']) {
      expect(String((await get('/', { accept })).bytes)).toBe('{"api":true}')
      expect((await get('/home', { accept })).status).toBe(404)
    }
    expect((await get('/home', BROWSER, 'POST')).status).toBe(404)
  })

  it('serve an error page to browsers at unknown paths, and not to API clients', async () => {
    const { portal, get } = await serve(createFolder())
    expect((await get('/colections', BROWSER)).status).toBe(503)
    await portal.settled
    for (const path of ['/colections', '/colections/a?b', '/homepage']) {
      const { status, headers, bytes } = await get(path, BROWSER)
      expect([path, status, headers['content-type']]).toEqual([path, 404, 'text/html; charset=utf-8'])
      expect(String(bytes)).toContain('/assets/a-1.js')
      expect((await get(path, { ...BROWSER, 'if-none-match': String(headers.etag) })).status).toBe(404)
      expect((await get(path)).headers['content-type']).toContain('application/json')
    }
    for (const path of ['/v1/nothing', '/graphql/nothing', '/docs/nothing', '/mcp/nothing', '/.well-known/nothing'])
      expect([path, (await get(path, BROWSER)).headers['content-type']]).toEqual([path, expect.stringContaining('application/json')])
  })

  it('contain the public address for scripts', async () => {
    const { portal, get } = await serve(createFolder(), copying, 'https://knowledge.example.com')
    await portal.settled
    expect(String((await get('/', BROWSER)).bytes)).toContain(' data-public-url="https://knowledge.example.com">')
  })

  it('have a strict content security policy, and no header for other origins', async () => {
    const { get } = await built()
    const { headers } = await get('/', { ...BROWSER, origin: 'https://evil.example' })
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-cache',
      vary: 'accept, accept-encoding, accept-language, cookie',
    })
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  it('are cached while they are the same, and differ by language', async () => {
    const { get } = await built()
    const first = await get('/', BROWSER)
    const etag = String(first.headers.etag)
    expect(await get('/', { ...BROWSER, 'if-none-match': etag })).toMatchObject({ status: 304, bytes: Buffer.alloc(0) })
    const arabic = await get('/', { ...BROWSER, 'if-none-match': etag, 'accept-language': 'ar-SA' })
    expect([arabic.status, String(arabic.bytes)]).toEqual([200, expect.stringContaining('<html lang="ar" dir="rtl">')])
  })

  it('are in the language of the reader, with preload headers for what the page needs', async () => {
    const folder = createFolder()
    const manifest = {
      'src/main.tsx': { file: 'assets/main-1.js' },
      '_common-1.js': { file: 'assets/common-1.js', name: 'common-ar' },
      'messages/ar/agents.json': { file: 'assets/words-1.js' },
      'src/pages/agents/agent-page.tsx': { file: 'assets/agent-1.js', imports: ['shared'] },
      'src/pages/agents/agents-page.tsx': { file: 'assets/agents-1.js' },
      shared: { file: 'assets/shared-1.js', imports: ['shared'] },
      arabic: { file: 'assets/arabic-common-1a-B_c.woff2' },
      latin: { file: 'assets/latin-common-1a-B_c.woff2' },
      rare: { file: 'assets/latin-rest-1.woff2' },
    }
    writeFileSync(join(folder, 'web/manifest.json'), JSON.stringify(manifest))
    writeFileSync(join(folder, 'web/index.html'), '<html lang="en"><head></head></html>')
    const { get, portal } = await serve(folder)
    await portal.settled
    const linksOf = async (cookie: string) => {
      const html = String((await get('/agents/agt_1', { ...BROWSER, cookie })).bytes)
      return [/lang="(\w+)"/.exec(html)![1], ...[...html.matchAll(/href="\/assets\/([^"]+)"/g)].map(([, file]) => file)]
    }
    expect(await linksOf('a=1; kis_language=ar')).toEqual([
      'ar',
      'arabic-common-1a-B_c.woff2',
      'latin-common-1a-B_c.woff2',
      'main-1.js',
      'common-1.js',
      'words-1.js',
      'agent-1.js',
      'shared-1.js',
    ])
    expect(await linksOf('kis_language=xx')).toEqual(['en', 'latin-common-1a-B_c.woff2', 'main-1.js', 'agent-1.js', 'shared-1.js'])
  })

  it('flush the head of the page at once to a client with a session', async () => {
    const folder = createFolder()
    writeFileSync(join(folder, 'web/index.html'), '<html lang="en"><h1><!--title--></h1><p><!--lead--></p></html>')
    writeFileSync(join(folder, 'web/heads.json'), '{"ar":{"home.title":"الرئيسية","home.lead":"a < b & $& c"}}')
    const { get, portal } = await serve(folder)
    await portal.settled
    const signedIn = { ...BROWSER, cookie: 'kis_language=ar; kis_session=x' }
    const htmlOf = async (path: string, headers: Readonly<Record<string, string>>) => String((await get(path, headers)).bytes).trim()
    expect(await htmlOf('/home', signedIn)).toBe(
      '<html lang="ar" dir="rtl" data-framed><h1>الرئيسية</h1><p>a &lt; b &amp; $&amp; c</p></html>',
    )
    expect(await htmlOf('/home/1', signedIn)).toBe('<html lang="ar" dir="rtl" data-framed><h1></h1><p></p></html>')
    for (const [path, cookie] of [
      ['/sign-in', signedIn.cookie],
      ['/home', 'kis_language=ar; a=kis_session=x'],
    ] as const)
      expect(await htmlOf(path, { ...BROWSER, cookie })).toBe('<html lang="ar" dir="rtl"><h1></h1><p></p></html>')
    expect((await get('/home', { ...signedIn, 'accept-encoding': 'br' })).headers['content-encoding']).toBe('br')
  })

  it('serve immutable files, compressed as the browser accepts', async () => {
    const { get } = await built()
    const plain = await get('/assets/a-1.js')
    expect(plain).toMatchObject({ status: 200, bytes: Buffer.from('export {}') })
    expect(plain.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
    })
    for (const [accepted, encoding] of [
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip', 'gzip'],
      ['gzip;q=1.0, br;q=0', 'gzip'],
      ['br; q=0.0, gzip;q=0', undefined],
      ['brotli', undefined],
    ] as const)
      expect((await get('/assets/a-1.js', { 'accept-encoding': accepted })).headers['content-encoding']).toBe(encoding)
    expect(String(gunzipSync((await get('/assets/a-1.js', { 'accept-encoding': 'gzip' })).bytes))).toBe('export {}')
    expect((await get('/assets/font-2.woff2', { 'accept-encoding': 'br' })).headers).toMatchObject({ 'content-type': 'font/woff2' })
  })

  it('serve no other file', async () => {
    const { get } = await built()
    for (const name of [
      'page.exe',
      'a-1.js.gz',
      'absent.js',
      '../index.html',
      '..%2findex.html',
      '%2e%2e/sources.sha256',
      '',
      'constructor',
    ])
      expect([name, (await get(`/assets/${name}`)).status]).toEqual([name, 404])
  })

  it('have no body for HEAD, but its length', async () => {
    const { get } = await built()
    for (const [path, headers] of [
      ['/', BROWSER],
      ['/assets/a-1.js', {}],
    ] as const) {
      const [whole, head] = [await get(path, headers), await get(path, headers, 'HEAD')]
      expect([head.status, head.bytes.length, head.headers['content-length']]).toEqual([200, 0, String(whole.bytes.length)])
    }
  })

  it('a build beside another container on the same directory removes only stale files', async () => {
    const folder = createFolder()
    const [building, left] = [join(folder, 'dist-1'), join(folder, 'dist-2')]
    for (const each of [building, left]) mkdirSync(each)
    const long = new Date(Date.now() - 3_600_000)
    utimesSync(left, long, long)
    await using one = openPortal({ folder, log: silentLog, builder: copying })
    await using other = openPortal({ folder, log: silentLog, builder: copying })
    await Promise.all([one!.settled, other!.settled])
    expect(
      readdirSync(folder)
        .filter((name) => name.startsWith('dist'))
        .sort(),
    ).toEqual(['dist', 'dist-1'])
    expect(readFileSync(join(folder, 'dist/index.html'), 'utf8')).toContain('a-1.js')
  })
})
