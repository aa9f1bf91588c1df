import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Vite would take graphql's `module` build while the federation packages require its `main`: two copies do not know each other's types.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    include: ['**/*.test.ts'],
    exclude: ['node_modules/**', '.cache/**'],
    environment: 'node',
    pool: 'forks',
    // Suites start real processes and engines: two at a time is what a two-core machine serves.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
