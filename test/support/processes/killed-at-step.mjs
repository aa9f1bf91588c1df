// Runs one call of `restore` or `backUp`, and kills this process before its Nth change of the file system. Prints the
// number of changes if it lives. MODULE is an address, OPTIONS are JSON.
//   node killed-at-step.mjs MODULE FUNCTION OPTIONS N
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const [module, name, options, step] = process.argv.slice(2)
let steps = 0
for (const change of ['fsyncSync', 'mkdirSync', 'openSync', 'renameSync', 'rmSync', 'writeFileSync']) {
  const original = fs[change]
  fs[change] = (...args) => {
    if (++steps === Number(step)) process.kill(process.pid, 'SIGKILL')
    return original(...args)
  }
}
syncBuiltinESMExports()
const { [name]: run } = await import(module)
await run({ ...JSON.parse(options), passphrase: async () => '' })
console.log(steps)
