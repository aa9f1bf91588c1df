import { request } from 'node:http'

/**
 * Requests `/healthz` of an address without pauses, and reports the longest answer on request. It is a separate
 * process, so that other work does not delay it.
 */
const [address] = process.argv.slice(2) as [string]
const EVERY_MS = 50
const TIMEOUT_MS = 30_000
let longestMs = 0
let failures = 0

function probe(): Promise<void> {
  const startMs = performance.now()
  return new Promise<void>((resolve) => {
    const probeRequest = request(`${address}/healthz`, { agent: false, timeout: TIMEOUT_MS }, (response) => {
      response.resume()
      response.on('end', resolve)
    })
    probeRequest.on('timeout', () => probeRequest.destroy(new Error('no answer')))
    probeRequest.on('error', () => {
      failures++
      resolve()
    })
    probeRequest.end()
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
