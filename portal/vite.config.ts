import { fileURLToPath } from 'node:url'
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type ProxyOptions } from 'vite'
import { precompress } from './build/precompress.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Where a service runs while you develop. */
const SERVICE = process.env.KIS_PORTAL_SERVICE ?? 'http://127.0.0.1:4000'
/** Development only: acts as this key where the browser has no session yet. */
const DEVELOPMENT_KEY = process.env.KIS_API_KEY

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
  plugins: [react(), tailwind(), precompress()],
  // Radix locks the scroll with a style element that it writes, which the Content-Security-Policy refuses.
  resolve: { alias: { 'react-remove-scroll': here('web/src/ui/scroll-lock.tsx') } },
  server: { port: 4100, proxy },
  preview: { port: 4100, proxy },
  build: {
    outDir: here('dist'),
    emptyOutDir: true,
    manifest: 'manifest.json',
    target: 'es2023',
    // The policy allows no `data:` font, and an image of its own file is cached.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
