import { attackForever } from '../attacks.ts'
import { makeCaller } from '../client.ts'

/**
 * Attacks a service until the parent process sends stop. Reports each attack when it begins, and the number of rounds
 * at the end.
 */
const [rest, graphql, key] = process.argv.slice(2) as [string, string, string]
const stop = new AbortController()
process.once('message', () => stop.abort())
process.on('disconnect', () => process.exit())
const service = { rest, graphql }
const rounds = await attackForever({ service, attacker: makeCaller(service, key), signal: stop.signal }, (name) =>
  process.send!({ begun: name }),
)
process.send!({ rounds }, () => process.exit())
