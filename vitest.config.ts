import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** `npm test` runs the quick suites; `npm run test:all` runs both. test/README.md says what makes a suite long. */
const LONG = ['**/*.slow.test.ts', 'test/{browser,conformance,e2e,fuzz,repository,retrieval,stores}/**/*.test.ts']
/** The one end-to-end pass of `npm test`. */
const END_TO_END = 'test/e2e/service/embedded.test.ts'
/** Helm and the image, which these need, take minutes to build: `.ci/run` runs them last. */
const BUILT = ['test/repository/helm.test.ts', 'test/e2e/service/image.test.ts']
const EXCLUDED = ['**/node_modules/**', '.cache/**', 'portal/dist*/**']

export default defineConfig({
  // Vite would take graphql's `module` build while the federation packages require its `main`: two copies do not know
  // each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    environment: 'node',
    reporters: ['default', './test/support/not-run.ts'],
    setupFiles: ['./test/support/warnings.ts'],
    pool: 'forks',
    // Suites start real processes and engines: two at a time is what a two-core machine serves.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // As in cli/kis.js: threads, of which every open SQLite store has one, need not compile their modules again.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url)) },
    projects: [
      { extends: true, test: { name: 'quick', include: ['**/*.test.ts'], exclude: [...EXCLUDED, ...LONG] } },
      { extends: true, test: { name: 'end-to-end', include: [END_TO_END], exclude: EXCLUDED } },
      // Two of these at a time are more than two cores serve at once.
      { extends: true, test: { name: 'long', include: LONG, exclude: [...EXCLUDED, END_TO_END, ...BUILT], testTimeout: 90_000 } },
      { extends: true, test: { name: 'built', include: BUILT, exclude: EXCLUDED, testTimeout: 90_000 } },
    ],
  },
})
