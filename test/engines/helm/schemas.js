// node schemas.js SWAGGER FOLDER: makes the JSON schemas that kubeconform reads of Kubernetes' OpenAPI, one for each kind of object and one
// with all definitions. A field that Kubernetes does not know is an error.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [, , swagger, folder] = process.argv
const ALL = '_definitions.json'
const { definitions } = JSON.parse(readFileSync(swagger, 'utf8'))

/** Quantities and ports of the two forms that YAML gives. */
const FREE = { 'int-or-string': ['integer', 'string'] }
const NUMBER_OR_TEXT = 'io.k8s.apimachinery.pkg.api.resource.Quantity'

function strict(name, definition) {
  if (name === NUMBER_OR_TEXT) return { type: ['string', 'number'] }
  if (FREE[definition.format]) return { type: FREE[definition.format] }
  const isClosed = definition.properties && !definition['x-kubernetes-preserve-unknown-fields'] && !definition.additionalProperties
  return { ...definition, ...(isClosed && { additionalProperties: false }) }
}

mkdirSync(folder, { recursive: true })
const all = Object.fromEntries(Object.entries(definitions).map(([name, definition]) => [name, strict(name, definition)]))
writeFileSync(join(folder, ALL), JSON.stringify({ definitions: all }))
for (const [name, definition] of Object.entries(all)) {
  for (const { group, version, kind } of definition['x-kubernetes-group-version-kind'] ?? []) {
    const file = [kind, group.split('.')[0], version].filter(Boolean).join('-').toLowerCase()
    const { properties } = definition
    if (!properties?.kind) continue
    // The object names its own kind.
    const own = { kind: { enum: [kind] }, apiVersion: { enum: [group ? `${group}/${version}` : version] } }
    writeFileSync(
      join(folder, `${file}.json`),
      JSON.stringify({ allOf: [{ $ref: `${ALL}#/definitions/${name}` }], properties: own, required: ['kind', 'apiVersion'] }),
    )
  }
}
