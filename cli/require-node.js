// Plain JavaScript, so that an old Node can print the problem instead of failing on the syntax of the files that it
// would load.
import { isNodeTooOld } from './bundled-node.js'

if (isNodeTooOld) {
  console.error(
    `This service needs Node 24 or newer, and this is Node ${process.versions.node}. Run \`npm ci\` without \`--omit=optional\`: it installs Node 24 for Linux ` +
      '(x64, arm64), macOS (x64) and Windows (x64), and `npx kis` then uses it. On another system, install Node 24 yourself: https://nodejs.org.',
  )
  process.exit(1)
}
