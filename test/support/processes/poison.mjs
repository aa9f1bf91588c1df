// Preloaded by `NODE_OPTIONS=--import`: what a workflow trims never ends, where it is this text. Each time that begins, the file gets a line.
import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const { trim } = String.prototype
if (isMainThread)
  String.prototype.trim = function () {
    if (this.length === 6 && String(this) === 'poison') {
      appendFileSync(process.env.KIS_TEST_POISON_FILE, 'trimmed\n')
      for (;;);
    }
    return trim.call(this)
  }
