#!/usr/bin/env node
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import './require-node.js'

// A start compiles some 700 files; kept, that is half a second less for the next one. Not in the system's temporary folder, where another
// user of the machine could put code of theirs. A folder that cannot be written is no failure: nothing is kept then.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)))
const { main } = await import('./main.ts')
await main(process.argv.slice(2))
