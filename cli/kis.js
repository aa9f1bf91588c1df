#!/usr/bin/env node
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import { bundledNode, isNodeTooOld, runIn } from './bundled-node.js'

const node = isNodeTooOld ? bundledNode() : null
if (node) {
  runIn(node, process.argv.slice(2))
} else {
  await import('./require-node.js')
  // With this value packages leave out checks that are meant for their developers.
  process.env.NODE_ENV ??= 'production'
  // The cache is not in the system's temporary folder, where another user of the machine could place code. Threads read
  // the variable.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))
  module.enableCompileCache()
  // This import comes first, because the process must note its parent while the rest loads.
  await import('./npm-parent.ts')
  const { main } = await import('./main.ts')
  await main(process.argv.slice(2))
}
