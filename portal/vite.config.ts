import { fileURLToPath } from 'node:url'
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type ProxyOptions } from 'vite'
import { firstScript } from './build/first-script.ts'
import { fonts } from './build/fonts.ts'
import { messages } from './build/messages.ts'
import { precompress } from './build/precompress.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Address of the service during development. */
const SERVICE = process.env.KIS_PORTAL_SERVICE ?? 'http://127.0.0.1:4000'
/** Development only: requests use this key while the browser has no session. */
const DEVELOPMENT_KEY = process.env.KIS_API_KEY

/** The first script and its imports. */
const FIRST = /\/web\/(?:index\.html|src\/(?:first|data\/early|i18n\/preferences)\.ts)|preload-helper/

/** Parts that most pages share. One file each would be more requests than a browser sends at once. */
const PARTS =
  /lucide-react|\/src\/(?:data\/calm|parts\/(?:badges|copy-button|data-table|digits|fact-list|money|page-header|search-box|time)|ui\/(?:pagination|table|tabs))\.ts/

/** Messages that only the pages of collections load, all of them at once. */
const OF_COLLECTIONS = '(?:collections|document|evaluation|searching|settings)'

const toService: ProxyOptions = {
  target: SERVICE,
  changeOrigin: true,
  ws: true,
  configure(proxy) {
    const authorize: Parameters<typeof proxy.on<'proxyReq'>>[1] = (outgoing, incoming) => {
      // The service compares the origin with its own host.
      if (incoming.headers.origin) outgoing.setHeader('origin', SERVICE)
      if (DEVELOPMENT_KEY && !incoming.headers.cookie?.includes('kis_session=')) {
        outgoing.setHeader('authorization', `Bearer ${DEVELOPMENT_KEY}`)
      }
    }
    proxy.on('proxyReq', authorize)
    proxy.on('proxyReqWs', authorize as never)
  },
}
const proxy = Object.fromEntries(['/graphql', '/session', '/v1', '/docs', '/graphiql', '/healthz'].map((path) => [path, toService]))

export default defineConfig({
  root: here('web'),
  plugins: [react(), tailwind(), firstScript(), fonts(), messages(), precompress()],
  resolve: {
    alias: {
      // Radix locks scrolling with a style element that it writes, which the Content-Security-Policy refuses.
      'react-remove-scroll': here('web/src/ui/scroll-lock.tsx'),
      // The build parses the messages, so the bundle needs no parser.
      '@formatjs/icu-messageformat-parser': '@formatjs/icu-messageformat-parser/no-parser.js',
    },
  },
  server: { port: 4100, proxy },
  preview: { port: 4100, proxy },
  build: {
    outDir: here('dist'),
    emptyOutDir: true,
    manifest: 'manifest.json',
    target: 'es2023',
    // The policy allows no `data:` font, and an image in a file of its own is cached.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The files of every first page are in two chunks: packages, which change seldom, and the portal's own code.
    // `first.ts` has a chunk of its own, because it runs before them.
    rolldownOptions: {
      input: [here('web/index.html'), here('web/src/main.tsx')],
      output: {
        codeSplitting: {
          groups: [
            { name: 'first', test: FIRST, priority: 3 },
            { name: 'packages', tags: ['$initial'], test: /node_modules/, priority: 2 },
            { name: 'portal', tags: ['$initial'], priority: 1 },
            { name: 'parts', test: PARTS },
            ...['en', 'ar'].flatMap((language) => [
              { name: `common-${language}`, test: new RegExp(`/messages/${language}/(?:common|errors)\\.json`) },
              { name: `collections-${language}`, test: new RegExp(`/messages/${language}/${OF_COLLECTIONS}\\.json`) },
            ]),
          ],
        },
      },
    },
  },
})
