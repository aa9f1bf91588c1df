// Plain JavaScript, because Node 20 runs it.

/** Binaries by system and processor. */
export const BINARIES = /^(?:onnxruntime-node\/bin\/[^/]+\/|usearch\/prebuilds\/)([^/-]+)[/-]([^/]+)\//
const BUNDLED_NODE = /^node-(?:linux|darwin|win)-[^/]+\//

/**
 * What the service never reads of packages that it needs. Node runs no TypeScript of packages, and nothing reads source
 * maps. `image/packages.ts` fails when the service can load one of these files.
 */
const UNNEEDED = [
  /\.(?:map|ts|mts|cts|tsx)$/,
  /(?:^|\/)(?:README|CHANGELOG|HISTORY)\.(?:md|markdown)$/i,
  // Only one build of Tesseract runs, with one form of each language's data.
  /^tesseract\.js-core\/tesseract-core(?!-simd-lstm\.(?:js|wasm)$)/,
  /^@tesseract\.js-data\/[^/]+\/4\.0\.0\//,
  // pdf.js is there for browsers, too, and pdf-parse holds it four times more.
  /^pdfjs-dist\/(?:build|image_decoders|legacy\/(?:image_decoders|web)|iccs|standard_fonts|wasm|web)\//,
  /^pdfjs-dist\/legacy\/build\/(?!pdf(?:\.worker)?\.mjs$)/,
  /^pdf-parse\/dist\/(?!pdf-parse\/(?:esm\/|cjs\/index\.cjs$))/,
  /^pdf-parse\/dist\/pdf-parse\/esm\/pdf\.worker\.mjs$/,
  /^@hyzyla\/pdfium\/dist\/(?!index\.esm\.browser\.js$|pdfium\.wasm$)/,
  /^@graphql-yoga\/render-graphiql\/cjs\//,
  // The source of the binary.
  /^usearch\/(?!javascript\/dist\/|prebuilds\/|package\.json$|LICENSE$)/,
  // What draws pages for pdf.js, which only reads text here, and where uploads are kept in other ways than ours.
  /^@napi-rs\//,
  /^(?:ioredis|@redis)\//,
]
/** Of the Node that npm brings, only the program is used. */
const OF_NODE = /^node-[^/]+\/(?:bin\/node|node\.exe|bin\/node\.exe|package\.json|LICENSE)$/

/**
 * Whether the service never reads a file of a package on this system. `file`: its path, from the package's name on.
 * `hasOwnNode`: Node 24 or newer is installed, besides the one that npm brings.
 */
export function isUnneeded(file, { platform, arch, hasOwnNode }) {
  const [, ofPlatform, ofArch] = BINARIES.exec(file) ?? []
  if (ofPlatform !== undefined) return ofPlatform !== platform || !ofArch.split('+').includes(arch)
  if (BUNDLED_NODE.test(file)) return hasOwnNode || !OF_NODE.test(file)
  return UNNEEDED.some((pattern) => pattern.test(file))
}

/** The path from the name of the innermost package on: `a/b.js` of `node_modules/c/node_modules/a/b.js`. */
export function fromPackage(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}
