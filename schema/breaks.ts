/**
 * Says what breaks clients of the last release: `released.graphql` has its schema, without descriptions. A break that
 * `CHANGELOG.md` tells users of, in a paragraph that begins with `Breaking for GraphQL:` and names the coordinate, is
 * accepted. With `--release` it writes `released.graphql` for this version.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { Supergraph } from '@apollo/federation-internals'
import { ChangeType, CriticalityLevel, diff } from '@graphql-inspector/core'
import { buildSchema, type GraphQLSchema, printSchema } from 'graphql'

const HEAD = /^# Version ([\d.]+),/
const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

interface Break {
  /** `Query.usage.first` */
  readonly coordinate: string
  readonly message: string
  /** A field was never null, and may be now. */
  readonly isNullable: boolean
}

/** What clients see of a supergraph. */
export function readApi(supergraphSdl: string): GraphQLSchema {
  return Supergraph.build(supergraphSdl, { supportedFeatures: null }).apiSchema().toGraphQLJSSchema()
}

export async function findBreaks(before: GraphQLSchema, after: GraphQLSchema): Promise<readonly Break[]> {
  const changes = await diff(before, after)
  return changes
    .filter(({ criticality }) => criticality.level === CriticalityLevel.Breaking)
    .map(({ path = '', message, type, meta }) => ({
      coordinate: path,
      message,
      isNullable: type === ChangeType.FieldTypeChanged && meta.oldFieldType === `${meta.newFieldType}!`,
    }))
}

/** Coordinates that the change log names as broken since the version. */
export function acceptedSince(version: string, changes: string): readonly string[] {
  const [since = ''] = changes.split(new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\]`, 'm'))
  const paragraphs = since.split(/\n(?=- |#|\n)/).filter((text) => text.startsWith('- Breaking for GraphQL:'))
  return paragraphs.flatMap((text) => [...text.matchAll(/`([\w.]+(?:\.\*)?)`/g)].map(([, coordinate]) => coordinate!))
}

/** A coordinate stands for what breaks there and below; `Query.*` for fields of the type that are nullable now. */
export function isAccepted({ coordinate, isNullable }: Break, accepted: readonly string[]): boolean {
  return accepted.some((pattern) => {
    if (pattern.endsWith('.*')) return isNullable && coordinate.startsWith(pattern.slice(0, -1))
    return coordinate === pattern || coordinate.startsWith(`${pattern}.`)
  })
}

/** The last version that the change log names; what is being developed is under `Unreleased`. */
export function lastRelease(changes: string): string | undefined {
  return [...changes.matchAll(/^## \[([\d.]+)\]/gm)][0]?.[1]
}

/** Without descriptions: they break nothing, and are most of the text. */
function printBare(schema: GraphQLSchema): string {
  return printSchema(schema).replaceAll(/^ *"""(?:[^"\n]+"""|[\s\S]*?\n *""")\n/gm, '')
}

if (import.meta.main) {
  const api = readApi(read('supergraph.graphql'))
  if (process.argv.includes('--release')) {
    const { version } = JSON.parse(read('../package.json')) as { readonly version: string }
    const text = `# Version ${version}, as clients see it. Written by \`npm run contract:release\`.\n${printBare(api)}\n`
    writeFileSync(new URL('released.graphql', import.meta.url), text)
  } else {
    const released = read('released.graphql')
    const [, version = ''] = HEAD.exec(released) ?? []
    const changes = read('../CHANGELOG.md')
    const last = lastRelease(changes)
    const accepted = acceptedSince(version, changes)
    const breaks = await findBreaks(buildSchema(released), api)
    const refused = breaks.filter((each) => !isAccepted(each, accepted))
    for (const { coordinate, message } of refused) console.error(`${coordinate}: ${message}`)
    if (refused.length > 0)
      console.error(
        `This breaks clients of ${version}. Keep the old form beside the new, with @deprecated; CONTRIBUTING.md says how to break it.`,
      )
    if (last !== version)
      console.error(`released.graphql has ${version}, and CHANGELOG.md ${last}: run \`npm run contract:release\` with each release.`)
    console.log(`${breaks.length} breaks since ${version}, ${breaks.length - refused.length} of them in CHANGELOG.md`)
    process.exitCode = refused.length > 0 || last !== version ? 1 : 0
  }
}
