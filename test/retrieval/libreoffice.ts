// Has LibreOffice make real files of two texts, reads each as the service does, and prints how many of the words it
// finds: npm run libreoffice. Code 1 if a file is below .99. It needs `soffice` and fonts with Arabic letters, on Debian:
// apt-get install --no-install-recommends libreoffice-writer libreoffice-calc libreoffice-impress fonts-hosny-amiri
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { toPresentation, toSpreadsheet, toTextDocument } from '../support/data/flat-open-document.ts'
import { pairsIn, recallOf, wordsIn } from '../support/data/word-recall.ts'
import { OFFICE_TEXTS, type OfficeBlock, type OfficeText } from './office-texts.ts'

const LEAST = 0.99
/** LibreOffice takes some seconds for each format, and more on a busy machine. */
const TIMEOUT_MS = 300_000

/** What is written, as flat OpenDocument, and the formats that LibreOffice saves it in. */
const KINDS = [
  { extension: 'fodt', write: toTextDocument, formats: ['docx', 'odt', 'rtf', 'doc', 'pdf', 'epub', 'html'] },
  { extension: 'fods', write: toSpreadsheet, formats: ['xlsx', 'ods'] },
  { extension: 'fodp', write: toPresentation, formats: ['pptx', 'odp'] },
] as const

const folder = mkdtempSync(join(tmpdir(), 'kis-libreoffice-'))
await using parser = await openDocumentParser({ log: silentLog })
try {
  const rows = []
  for (const { extension, write, formats } of KINDS) {
    const sources = OFFICE_TEXTS.map((text) => {
      const source = join(folder, `${text.language}.${extension}`)
      writeFileSync(source, write(text))
      return source
    })
    for (const format of formats) {
      convert(sources, format)
      for (const text of OFFICE_TEXTS) rows.push(await measure(text, `${text.language}.${format}`))
    }
  }
  console.table(Object.fromEntries(rows.map(({ name, ...row }) => [name, row])))
  const below = rows.filter(({ words }) => Number(words) < LEAST)
  if (below.length > 0) {
    console.error(`below ${LEAST}: ${below.map(({ name }) => name).join(', ')}`)
    process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function convert(sources: readonly string[], format: string): void {
  // A profile of its own, so that an open LibreOffice does not take the call.
  const profile = `-env:UserInstallation=file://${join(folder, 'profile')}`
  execFileSync('soffice', [profile, '--headless', '--convert-to', format, '--outdir', folder, ...sources], {
    // It warns that it has no Java, which these formats do not need.
    stdio: 'ignore',
    timeout: TIMEOUT_MS,
  })
}

/** `words`: the share of the text's words that the file gives. `pairs`: of two words that follow each other in a block. */
async function measure(text: OfficeText, name: string) {
  const read = await parser.parse(readFileSync(join(folder, name)), name, new AbortController().signal)
  const pieces = text.blocks.flatMap(piecesOf)
  return {
    name,
    words: recallOf(pieces.flatMap(wordsIn), wordsIn(read.text)).toFixed(4),
    pairs: recallOf(
      pieces.flatMap((piece) => pairsIn(wordsIn(piece))),
      pairsIn(wordsIn(read.text)),
    ).toFixed(4),
    warnings: read.warnings.map(({ code }) => code).join(' '),
  }
}

function piecesOf(block: OfficeBlock): readonly string[] {
  if (block.kind === 'table') return block.rows.flat()
  if (block.kind === 'list') return block.items
  return block.kind === 'paragraph' && block.footnote ? [block.text, block.footnote] : [block.text]
}
