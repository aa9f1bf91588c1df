import { request } from 'node:http'

/**
 * Requests `/healthz` of an address without pauses, and reports the longest answer on request. It is a separate
 * process, so that other work does not delay it.
 */
const [address] = process.argv.slice(2) as [string]
const EVERY_MS = 50
const GIVE_UP_MS = 30_000
let longestMs = 0
let failures = 0

function probe(): Promise<void> {
  const startMs = performance.now()
  return new Promise<void>((resolve) => {
    const asked = request(`${address}/healthz`, { agent: false, timeout: GIVE_UP_MS }, (response) => {
      response.resume()
      response.on('end', resolve)
    })
    asked.on('timeout', () => asked.destroy(new Error('no answer')))
    asked.on('error', () => {
      failures++
      resolve()
    })
    asked.end()
  }).then(() => {
    longestMs = Math.max(longestMs, performance.now() - startMs)
  })
}

process.on('message', () => {
  process.send!({ longestMs, failures })
  longestMs = 0
  failures = 0
})
process.on('disconnect', () => process.exit())
process.send!('ready')
for (;;) {
  await probe()
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
}
