#!/usr/bin/env node
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import { bundledNode, isNodeTooOld, runIn } from './bundled-node.js'

const node = isNodeTooOld ? bundledNode() : null
if (node) {
  runIn(node, process.argv.slice(2))
} else {
  await import('./require-node.js')
  // A start compiles some 700 files; kept, that is half a second less for the next one. Not in the system's temporary folder, where another
  // user of the machine could put code of theirs. A folder that cannot be written is no failure: nothing is kept then.
  // In the environment, so that threads find it too: one that strips types itself takes ten megabytes for that and keeps them.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))
  module.enableCompileCache()
  // The process notes who started it now, while the rest loads.
  await import('./npm-parent.ts')
  const { main } = await import('./main.ts')
  await main(process.argv.slice(2))
}
