#!/usr/bin/env node
import { bundledNode, isNodeTooOld, runIn } from './bundled-node.js'
import { keepCompiledCode } from './compiled-code.js'
import { becomeLean } from './lean-node.js'
import { resolveOwnFilesByName } from './own-files.js'

const node = isNodeTooOld ? bundledNode() : null
if (node) {
  runIn(node, process.argv.slice(2))
} else {
  await import('./require-node.js')
  // Packages then leave out what helps whoever develops them: graphql-js looks for a second copy of itself at each step.
  process.env.NODE_ENV ??= 'production'
  if (process.argv[2] === 'start') becomeLean()
  keepCompiledCode()
  resolveOwnFilesByName()
  // Loads first, because the process must note its parent while the rest loads.
  await import('./npm-parent.ts')
  const { main } = await import('./main.ts')
  await main(process.argv.slice(2))
}
