// Lints the OpenAPI document, as served with the webhooks, with Redocly's rules of `redocly.yaml`. Exits with code 1 and
// every problem.
import { fileURLToPath } from 'node:url'
import { lintFromString, loadConfig } from '@redocly/openapi-core'
import { readOpenApi } from '../rest-adapter/http/openapi.ts'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const config = await loadConfig({ configPath: at('../redocly.yaml') })
const source = JSON.stringify(readOpenApi().document)
const problems = await lintFromString({ source, absoluteRef: at('../rest-adapter/contract/document.ts'), config })

for (const { ruleId, message, location } of problems) console.error(`${location[0]?.pointer ?? ''}: ${message} (${ruleId})`)
console.log(`The OpenAPI document has ${problems.length} problems`)
process.exitCode = problems.length > 0 ? 1 : 0
