// Plain JavaScript, so that an old Node can say what is wrong instead of failing on the syntax of what it would load.
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(
    `This service runs on Node 24 or newer; this is ${process.version}. Its npm scripts bring Node 24 for Linux (x64, arm64), macOS (x64) and Windows (x64): ` +
      'start it by `npm start` or `npm run kis -- <command>`, after `npm ci` with optional dependencies. Elsewhere install Node 24 first.',
  )
  process.exit(1)
}
