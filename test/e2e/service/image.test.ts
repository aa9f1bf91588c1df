import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { drawText, toScan } from '../../../subgraphs/knowledge/adapters/parser/test-support/scans.ts'
import { addDocument, createCaller, newCollection } from '../../support/client.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { ROOT, readDockerfile } from '../../support/processes/containers.ts'
import { type Service, type ServiceOptions, startEmbedded } from '../../support/processes/service.ts'
import { endToEnd } from './suite/index.ts'

/** What the image may add to its base. */
const MOST_MB = 400

const declare = (files: string) => {
  const app = join(files, 'app')
  const paths = readdirSync(app, { recursive: true, encoding: 'utf8' })

  it(`adds at most ${MOST_MB} MB to its base`, () => {
    const sizes = paths.map((path) => statSync(join(app, path))).map((stat) => (stat.isFile() ? stat.size : 0))
    expect(sizes.reduce((sum, size) => sum + size) / 1e6).toBeLessThanOrEqual(MOST_MB)
  })

  it('contains no development package, no test, and libraries of its own system only', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
    const own = paths.filter((path) => path.startsWith('node_modules/') && path.endsWith('/package.json')).map((path) => path.slice(0, -13))
    expect(own.length).toBeGreaterThan(100)
    expect(own.filter((folder) => packages[folder]?.dev)).toEqual([])
    expect(paths.filter((path) => /\.test\.tsx?$|\.map$/.test(path) && !path.startsWith('portal/dist'))).toEqual([])
    const libraries = paths.filter((path) => /\.(node|so|dylib|dll)(\.\d+)*$/.test(path))
    expect(libraries.filter((path) => !new RegExp(`/${process.platform}[/-]${process.arch}/`).test(path))).toEqual([])
  })

  const { entrypoint, user } = readDockerfile()
  it('runs as the user of the test script', () => expect(user).toBe('1000:1000'))

  const run = join(ROOT, 'test/engines/image/run.sh')
  const kis = (folder: string) => [run, files, folder, ...entrypoint.map((word) => (word === 'node' ? '/usr/local/bin/node' : word))]
  const start = (options: ServiceOptions = {}) => startEmbedded({ ...options, kis })

  describe('Files that the service loads on demand', () => {
    let service: Service
    beforeAll(async () => {
      service = await start({ env: { KIS_PORTAL: 'on' } })
    })
    afterAll(() => service?.close())

    it('include those for OCR', async () => {
      const caller = createCaller(service, service.key)
      const { id } = await newCollection(caller)
      await caller.rest('PATCH', `/v1/collections/${id}`, { ocr: 'auto' })
      const scan = await toScan([await drawText('The archive opens at seven in the morning.')])
      const document = await addDocument(caller, id, 'scan.pdf', scan)
      const { body } = await caller.rest('GET', `/v1/collections/${id}/documents/${document.id}/text`)
      expect(JSON.stringify(body)).toContain('seven in the morning')
    })

    it('include the portal, the API reference and GraphiQL', async () => {
      const page = (path: string) =>
        fetch(new URL(path, service.rest), { headers: { accept: 'text/html' } }).then((response) => response.text())
      expect(await page('/')).toMatch(/<script type="module"[^>]* src="\/assets\/index-/)
      expect(await page('/docs/scalar.js')).toContain('createApiReference')
      expect(await page('/graphql')).toContain('GraphiQL')
    })
  })

  endToEnd('read-only container image with its own user', start)
}

await onEngine('KIS_TEST_IMAGE', 'Container image', declare, { isEverywhere: false })
