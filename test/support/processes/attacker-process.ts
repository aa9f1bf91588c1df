import { ATTACKS, attackForever } from '../attacks.ts'
import { createCaller } from '../client.ts'

/**
 * Runs the attack of this name against a service until the parent process sends stop. Reports when the first round has
 * ended, and the number of rounds at the end.
 */
const [rest, graphql, key, name] = process.argv.slice(2) as [string, string, string, string]
const attack = ATTACKS.find((one) => one.name === name)!
const stop = new AbortController()
process.once('message', () => stop.abort())
process.on('disconnect', () => process.exit())
const service = { rest, graphql }
const target = { service, attacker: createCaller(service, key), signal: stop.signal }
// The first round uploads what the others need.
await attack.run(target).catch(() => undefined)
process.send!({ begun: name })
const rounds = await attackForever(attack, target)
process.send!({ rounds }, () => process.exit())
