import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/**
 * These start processes, kill some, and wait: for leases and holds to end, for the next try, for an engine. They leave
 * two cores half idle when two run at a time.
 */
const WAITING = ['test/{e2e,stores}/**/*.test.ts', 'test/contract/*.slow.test.ts']
/** Of them, these compute all the time. */
const COMPUTING = [
  'test/e2e/agents/extractive-walk.test.ts',
  'test/e2e/attacks/{document-bombs,graphql-attacks,tenant-matrix}.test.ts',
  'test/e2e/models/{retrieval,spoken-documents}.test.ts',
  'test/e2e/money/ocr-pages.test.ts',
  'test/e2e/service/{cost-of-a-call,documentation,five-processes,replicas-suite}.test.ts',
  'test/e2e/stores/damaged-stores.test.ts',
]
/** `npm test` runs the quick suites; `npm run test:all` runs all. test/README.md says what makes a suite long. */
const LONG = [
  '!(test)/**/*.slow.test.ts',
  'test/!(contract|e2e)/**/*.slow.test.ts',
  'test/{browser,conformance,fuzz,repository,retrieval}/**/*.test.ts',
  ...COMPUTING,
]
/**
 * Rules, which start nothing: their files share two processes, and what is loaded into them. A file that changes what
 * its process has, such as a variable, a timer or a module, must not be one of them.
 */
export const RULES = [
  '{gateway/sign-in,portal/web/src/{data,pages,parts},rest-adapter}/**/*.test.ts',
  'schema/{breaks,contract,events}.test.ts',
  'subgraphs/**/{domain,resolvers}/**/*.test.ts',
  'subgraphs/common/*.test.ts',
  'subgraphs/common/{bytes,catalog,documents,erasure,events,identity,link,sessions,telemetry}/**/*.test.ts',
]
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
      { extends: true, test: { name: 'quick', include: ['**/*.test.ts'], exclude: [...EXCLUDED, ...LONG, ...WAITING, ...RULES] } },
      { extends: true, test: { name: 'rules', include: RULES, exclude: [...EXCLUDED, ...LONG], isolate: false } },
      { extends: true, test: { name: 'end-to-end', include: [END_TO_END], exclude: EXCLUDED } },
      // Each suite alone can occupy two cores, and two run at a time, so their tests may take longer.
      { extends: true, test: { name: 'long', include: LONG, exclude: [...EXCLUDED, ...BUILT], testTimeout: 90_000 } },
      {
        extends: true,
        test: {
          name: 'waiting',
          include: WAITING,
          exclude: [...EXCLUDED, ...COMPUTING, END_TO_END, ...BUILT],
          testTimeout: 90_000,
          maxWorkers: 3,
          // After all others: a group has one number of workers.
          sequence: { groupOrder: 1 },
        },
      },
      { extends: true, test: { name: 'built', include: BUILT, exclude: EXCLUDED, testTimeout: 90_000 } },
    ],
  },
})
