// Lints the description of the REST API with Redocly's rules of `redocly.yaml`: the file, and the served document,
// which also has the webhooks. Exits with code 1 and every problem.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { lintFromString, loadConfig } from '@redocly/openapi-core'
import { readOpenApi } from '../rest-adapter/http/openapi.ts'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const config = await loadConfig({ configPath: at('../redocly.yaml') })
const sources = {
  'schema/openapi.yaml': readFileSync(at('../schema/openapi.yaml'), 'utf8'),
  'the served document': JSON.stringify(readOpenApi().document),
}

let problems = 0
for (const [name, source] of Object.entries(sources)) {
  for (const { ruleId, message, location } of await lintFromString({ source, absoluteRef: at('../schema/openapi.yaml'), config })) {
    problems += 1
    console.error(`${name}${location[0]?.pointer ?? ''}: ${message} (${ruleId})`)
  }
}
console.log(`${Object.keys(sources).length} descriptions of the API, ${problems} problems`)
process.exitCode = problems > 0 ? 1 : 0
