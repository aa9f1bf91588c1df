import { escapeUntrustedText } from '../../../common/untrusted-text.ts'
import type { CollectionContents, CollectionDescription } from '../../ports/knowledge.ts'

/**
 * Longest tool description in characters. A model reads it with every call, and vendors cut or refuse much longer ones.
 */
const MAX_CHARACTERS = 1_500
/** Longest part of the collection owner's description. */
const MAX_OWN_CHARACTERS = 400
/** Characters that titles may take, to leave room for headings. */
const MAX_TITLE_CHARACTERS = 500

const LANGUAGES: Readonly<Record<string, string>> = { ar: 'Arabic', en: 'English' }

const PURPOSE = 'by meaning and by words, in Arabic and English alike: a question in one language finds passages in the other.'
const USE =
  'Use it whenever the question may be answered by these documents; not for greetings or what the conversation already says. Search again with other words or filters when the passages do not answer.'

/**
 * Tells a model what it needs to decide whether the collection may have the answer. It is written from the current
 * contents.
 */
export function describeCollection({ name, description, chunkCount, contents }: CollectionDescription): string {
  const before = [
    `Searches the document collection ${quoted(name, 200)} ${PURPOSE}`,
    ...(description ? [clipped(oneLine(description), MAX_OWN_CHARACTERS)] : []),
    describeExtent(contents, chunkCount),
  ]
  const room = MAX_CHARACTERS - [...before, USE].join('\n').length - 1
  return [...before, ...describeContents(contents, room), USE].join('\n')
}

function describeExtent({ documentCount, examinedCount, languages, oldestAt, newestAt }: CollectionContents, chunkCount: number): string {
  if (documentCount === 0) return 'It holds no documents yet.'
  const shares = languages.map(({ language, documentCount: count }) => {
    const name = language === null ? 'another language' : (LANGUAGES[language] ?? language)
    return `${count} in ${name}`
  })
  const examined = examinedCount < documentCount ? `; of the newest ${examinedCount}, ` : ': '
  const from = oldestAt?.slice(0, 10)
  const to = newestAt?.slice(0, 10)
  const dates = from && to ? `; added ${from === to ? `on ${from}` : `from ${from} to ${to}`}` : ''
  return `It holds ${documentCount} ${documentCount === 1 ? 'document' : 'documents'} in ${chunkCount} passages${examined}${shares.join(', ')}${dates}.`
}

/** Each one is in quotation marks: these are the documents' words, which must not look like ours. */
function describeContents({ titles, headings }: CollectionContents, room: number): readonly string[] {
  const named = titles.map(({ title, fileName }) =>
    title === null ? quoted(fileName, 80) : `${quoted(title, 80)} (${clipped(oneLine(fileName), 60)})`,
  )
  const first = listWithin('Documents, in their own words: ', named, Math.min(room, MAX_TITLE_CHARACTERS))
  const second = listWithin(
    'Headings in them: ',
    headings.map((heading) => quoted(heading, 80)),
    room - first.length - 1,
  )
  return [first, second].filter((list) => list !== '')
}

/** As many items as fit; empty when not even the first does. */
function listWithin(label: string, items: readonly string[], room: number): string {
  let list = ''
  for (const item of items) {
    const longer = list === '' ? label + item : `${list}; ${item}`
    // The end of the list takes one or three more characters.
    if (longer.length + 3 > room) return list && `${list}; …`
    list = longer
  }
  return list && `${list}.`
}

function quoted(text: string, most: number): string {
  return `“${clipped(oneLine(text).replaceAll(/[“”"]/g, "'"), most)}”`
}

function clipped(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/**
 * Line breaks, control characters and characters that change the direction of writing could make text look like ours.
 */
function oneLine(text: string): string {
  return escapeUntrustedText(text.replaceAll(/[\s\p{Cc}\u202A-\u202E\u2066-\u2069]+/gu, ' ').trim())
}
