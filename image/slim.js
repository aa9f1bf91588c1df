// Removes from node_modules what the service never reads, after `npm ci --omit=dev`: `npm run slim`. `npm ci` brings it
// back. Plain JavaScript, because Node 20 runs it.
import { existsSync, readdirSync, rmdirSync, statSync, unlinkSync } from 'node:fs'
import { join, sep } from 'node:path'
import { arch, execPath, platform } from 'node:process'
import { fileURLToPath } from 'node:url'
import { isNodeTooOld } from '../cli/bundled-node.js'
import { fromPackage, isUnneeded } from './unneeded.js'

const root = fileURLToPath(new URL('../node_modules', import.meta.url))
if (existsSync(join(root, 'typescript'))) {
  console.error('This folder has the packages for development, which need what would be removed. Run `npm ci --omit=dev` first.')
  process.exit(1)
}
const system = { platform, arch, hasOwnNode: !isNodeTooOld && !execPath.startsWith(root + sep) }
const sizes = { removed: 0, left: 0 }
clean(root)
console.log(`${Math.round(sizes.removed / 1e6)} MB removed from node_modules, ${Math.round(sizes.left / 1e6)} MB left`)

/** Removes what is not needed below a folder, and folders that are empty then. */
function clean(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      clean(path)
      if (readdirSync(path).length === 0) rmdirSync(path)
    } else if (entry.isFile()) {
      const isGone = isUnneeded(fromPackage(path.split(sep).join('/')), system)
      sizes[isGone ? 'removed' : 'left'] += statSync(path).size
      if (isGone) unlinkSync(path)
    }
  }
}
