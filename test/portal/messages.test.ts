import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isPluralElement, isSelectElement, isTagElement, type MessageFormatElement, parse, TYPE } from '@formatjs/icu-messageformat-parser'
import { describe, expect, it } from 'vitest'
import service from '../../portal/web/messages/service-ar.json' with { type: 'json' }
import { ERRORS } from '../../schema/errors.ts'
import { DOCUMENT_ERROR_CODES, WEB_SOURCE_ERROR_REASONS } from '../../subgraphs/knowledge/domain/records.ts'
import { DOCUMENT_WARNING_CODES } from '../../subgraphs/knowledge/ports/document-parser.ts'

const WEB = fileURLToPath(new URL('../../portal/web', import.meta.url))
const NAMES = globSync('messages/en/*.json', { cwd: WEB }).map((file) => file.slice('messages/en/'.length))

/** The terms of the glossary, with what all forms of their Arabic word have. */
const TERMS: readonly (readonly [RegExp, RegExp])[] = [
  [/\babilit(?:y|ies)\b/i, /قدر/],
  [/\badmins?\b/i, /مدير/],
  [/\bagents?\b/i, /وكيل|وكلا/],
  [/\banswers?\b/i, /إجاب|[أاتي]جاب|[أت]جيب|يجيب|[يت]جب |أجب/],
  [/\bbalance\b/i, /رصيد/],
  [/\bbranch(?:es)?\b/i, /تفرع/],
  [/\bcalendar\b/i, /تقويم/],
  [/\bcalls?\b/i, /استدعا|ستدع/],
  [/\bcancel/i, /لغ|إلغاء/],
  [/\bcharges?\b/i, /بند|بنود|تحصيل/],
  [/\bchats?\b/i, /محادث/],
  [/\bchunks?\b/i, /مقطع|مقاطع/],
  [/\bcit(?:es?|ed|ations?)\b/i, /قتبا|قتبس/],
  [/\bcodes?\b/i, /رمز|رموز/],
  [/\bcollections?\b/i, /مجموع/],
  [/\bcontext\b/i, /سياق/],
  [/\bcorrupted\b/i, /تالف/],
  [/\bcosts?\b/i, /تكلف|كم كلف/],
  [/\bdeliver(?:y|ies)\b/i, /تسليم/],
  [/\bdocuments?\b/i, /مستند/],
  [/\bembedding\b/i, /تضمين/],
  [/\bendpoints?\b/i, /عنوان (?:ال)?إشعار|عناوين/],
  [/\bengines?\b/i, /محرك/],
  [/\bevaluations?\b/i, /تقييم/],
  [/\bevents?\b/i, /حدث|أحداث/],
  [/\bfailed\b/i, /فشل/],
  [/\bfallbacks?\b/i, /بديل|بدائل/],
  [/\bfields?\b/i, /حقل|حقول/],
  [/\bfiles?\b/i, /ملف/],
  [/\bgold questions?\b/i, /مرجعي/],
  [/\bgraph\b/i, /رسم/],
  [/\bholds?\b/i, /حجز|حجوز/],
  [/\bimages?\b/i, /صورة|صور/],
  [/\binference\b/i, /استدلال/],
  [/\binputs?\b/i, /مدخل|إدخال/],
  [/\binstructions\b/i, /تعليمات/],
  [/\binvit/i, /دعو|دعا|ادع|داع/],
  [/\bkeys?\b/i, /مفتاح|مفاتيح/],
  [/\bknowledge\b/i, /معرف/],
  [/\bledger\b/i, /سجل/],
  [/\blimits?\b/i, /حد/],
  [/\bmembers?\b/i, /عضو|أعضاء/],
  [/\bmodels?\b/i, /نموذج|نماذج/],
  [/\bnodes?\b/i, /عقد/],
  [/\boperators?\b/i, /مشغل/],
  [/\borganizations?\b/i, /مؤسس/],
  [/\boutputs?\b/i, /مخرج|إخراج/],
  [/\bperiods?\b/i, /فتر/],
  [/\bplans?\b/i, /خط[ةطت]/],
  [/\bprocessing\b/i, /معالج/],
  [/\bquestions?\b/i, /سؤال|أسئلة/],
  [/\bquotas?\b/i, /حصة|حصص/],
  [/\branks?\b/i, /مرتب|مراتب/],
  [/\bre-embedding/i, /إعادة (?:ال)?تضمين/],
  [/\breceipts?\b/i, /إيصال/],
  [/\brequests?\b/i, /طلب/],
  [/\breranking\b/i, /إعادة (?:ال)?ترتيب/],
  [/\bresidency\b/i, /موقع (?:ال)?معالجة/],
  [/\brespon(?:d|se)/i, /ستجاب|ستجيب/],
  [/\brevok/i, /بطل|إبطال/],
  [/\broles?\b/i, /دور/],
  [/^run\b|\b(?:a|each|last|one|the|this) run\b/i, /تشغيل/],
  [/\brunning\b/i, /قيد التنفيذ|جار/],
  [/\bschemas?\b/i, /مخطط/],
  [/\bscopes?\b/i, /صلاحي/],
  [/\bscores?\b/i, /درجة|درجات/],
  [/\bsecrets?\b/i, /سر/],
  [/\bsessions?\b/i, /جلس/],
  [/\bsign(?:ed)?[ -](?:in|out)\b/i, /تسجيل|سجل/],
  [/\bsize\b/i, /حجم/],
  [/\bspeech (?:models?|to text)\b|\btranscription\b/i, /تفريغ/],
  [/\bspend limits?\b/i, /حد (?:ال)?إنفاق/],
  [/\bstatus(?:es)?\b/i, /حال/],
  [/\bsuspended\b/i, /علق|تعليق/],
  [/\bthreads?\b/i, /محادث/],
  [/\btokens?\b/i, /رمز|رموز/],
  [/\btools?\b/i, /أداة|أدوات/],
  [/\btop(?:ped)?[ -]up\b/i, /شحن/],
  [/\busage\b/i, /استخدام/],
  [/\bvendors?\b/i, /مزود/],
  [/\bversions?\b/i, /إصدار/],
  [/\bwaiting\b/i, /نتظار|نتظر/],
  [/\bwallets?\b/i, /محفظ|محافظ/],
  [/\bwebhooks?\b/i, /إشعار/],
  [/\bworkflows?\b/i, /سير (?:ال)?عمل/],
]
/** Names, and words in another meaning than the glossary's. */
const NO_TERMS = /JSON Schema|SDK, Node|evaluation\.score_fell|into code/g
/** Words that the glossary and docs/vocabulary.md refuse. */
const REFUSED =
  /\b(?:administrators?|asks the model|damaged?|doors?|foreign|go on|kept|passages?|people|persons?|pictures?|states?|strangers?|tell|told|under way)\b/i
const REFUSED_ARABIC = /جواب|أجوبة|أخفق|[اتي]ستعمل|استعمال/
const VOWEL_MARKS = /[\u064b-\u0652]/g

function read(language: string, name: string): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(`${WEB}/messages/${language}/${name}`, 'utf8'))
}

/** The messages of the portal: English and Arabic. */
function allTexts(): readonly (readonly [string, string])[] {
  return NAMES.flatMap((name) => {
    const arabic = read('ar', name)
    return Object.entries(read('en', name)).map(([id, english]) => [english, arabic[id]!] as const)
  })
}

const bare = (arabic: string) => arabic.replace(VOWEL_MARKS, '')

/** The names that a message takes values by. */
function placeholders(elements: readonly MessageFormatElement[]): readonly string[] {
  return elements.flatMap((element) => {
    if (element.type === TYPE.literal || element.type === TYPE.pound) return []
    if (isTagElement(element)) return [element.value, ...placeholders(element.children)]
    const inner =
      isPluralElement(element) || isSelectElement(element) ? Object.values(element.options).flatMap(({ value }) => placeholders(value)) : []
    return [element.value, ...inner]
  })
}

/** The categories of the plurals of a message, such as `few`. */
function categories(elements: readonly MessageFormatElement[]): readonly (readonly string[])[] {
  return elements.flatMap((element) => {
    if (isTagElement(element)) return categories(element.children)
    if (!isPluralElement(element) && !isSelectElement(element)) return []
    const inner = Object.values(element.options).flatMap(({ value }) => categories(value))
    return isPluralElement(element) ? [Object.keys(element.options), ...inner] : inner
  })
}

/** The rows of the glossary: the English term and the Arabic one. */
const GLOSSARY = readFileSync(`${WEB}/../glossary.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.split(' | ').map((cell) => cell.replace('| ', '')) as [string, string])

const unique = (values: readonly string[]) => [...new Set(values)].sort()

describe('Messages of the portal', () => {
  it('exist in both languages, in the same files', () => {
    expect(
      globSync('messages/ar/*.json', { cwd: WEB })
        .map((file) => file.slice('messages/ar/'.length))
        .sort(),
    ).toEqual([...NAMES].sort())
    const index = readFileSync(`${WEB}/messages/en/index.ts`, 'utf8')
    for (const name of NAMES) expect(index).toContain(`'./${name}'`)
  })

  it.each(NAMES)('%s has the same IDs in both, sorted, each in one file', (name) => {
    const ids = Object.keys(read('en', name))
    expect(Object.keys(read('ar', name))).toEqual(ids)
    expect(ids).toEqual([...ids].sort())
    for (const other of NAMES.filter((each) => each !== name)) {
      expect(
        Object.keys(read('en', other)).filter((id) => ids.includes(id)),
        other,
      ).toEqual([])
    }
  })

  it.each(NAMES)('%s uses the same values in both languages', (name) => {
    const [english, arabic] = [read('en', name), read('ar', name)]
    const differing = Object.keys(english).filter(
      (id) => unique(placeholders(parse(english[id]!))).join() !== unique(placeholders(parse(arabic[id]!))).join(),
    )
    expect(differing).toEqual([])
  })

  it.each(NAMES)('%s has each plural form of Arabic that whole numbers need', (name) => {
    const lacking = Object.entries(read('ar', name)).filter(([, text]) =>
      categories(parse(text)).some((present) => ['one', 'two', 'few', 'many', 'other'].some((category) => !present.includes(category))),
    )
    expect(lacking.map(([id]) => id)).toEqual([])
  })

  it.each(NAMES)('%s is in Arabic letters, without English text', (name) => {
    const [english, arabic] = [read('en', name), read('ar', name)]
    const same = Object.keys(english).filter((id) => /[a-z]{3}/i.test(english[id]!) && english[id] === arabic[id])
    expect(same).toEqual([])
  })

  it.each(TERMS)('use the one word of the glossary for %s', (term, arabicWord) => {
    const lacking = [...allTexts(), ...Object.entries(service)].filter(
      // Names of values are no words.
      ([english, arabic]) => term.test(english.replace(/\{\w+(?=[,}])/g, '').replace(NO_TERMS, '')) && !arabicWord.test(bare(arabic)),
    )
    expect(lacking).toEqual([])
  })

  it('use every term of the glossary, and no word that it refuses', () => {
    const isSame = ([term, arabicWord]: readonly [RegExp, RegExp], [english, arabic]: readonly [string, string]) =>
      term.test(english) && arabicWord.test(bare(arabic))
    // "To use" has forms that Arabic has other words for.
    expect(GLOSSARY.filter((row) => !TERMS.some((term) => isSame(term, row))).map(([english]) => english)).toEqual(['to use'])
    expect(TERMS.filter((term) => !GLOSSARY.some((row) => isSame(term, row)))).toEqual([])
    expect(allTexts().filter(([english, arabic]) => REFUSED.test(english) || REFUSED_ARABIC.test(bare(arabic)))).toEqual([])
    expect(Object.values(service).filter((arabic) => REFUSED_ARABIC.test(bare(arabic)))).toEqual([])
  })

  it('are loaded with the pages that show them', () => {
    const fileOf = new Map(NAMES.flatMap((name) => Object.keys(read('en', name)).map((id) => [id, name.replace('.json', '')] as const)))
    const filesOf = (folder: string) => {
      const code = globSync(`src/${folder}/**/*.{ts,tsx}`, { cwd: WEB, exclude: ['**/*.test.ts'] })
        .map((file) => readFileSync(`${WEB}/${file}`, 'utf8'))
        .join('\n')
      const starts = [...code.matchAll(/`([a-zA-Z.]+\.)\$\{/g)].map(([, start]) => start!)
      const used = [...fileOf].filter(
        ([id]) => code.includes(`'${id}'`) || code.includes(`"${id}"`) || starts.some((each) => id.startsWith(each)),
      )
      return unique(used.map(([, file]) => file)).filter((file) => !['common', 'errors'].includes(file))
    }
    for (const folder of ['app', 'i18n', 'parts', 'ui']) expect(filesOf(folder), folder).toEqual([])
    for (const folder of globSync('src/pages/*', { cwd: WEB })) {
      const routes = readFileSync(`${WEB}/${folder}/routes.ts`, 'utf8')
      const lacking = filesOf(folder.slice('src/'.length)).filter((file) => !routes.includes(`'${file}'`))
      expect(lacking, `${folder}/routes.ts`).toEqual([])
    }
  })

  it('are all used, except the common words, which any page may use', () => {
    const code = globSync('src/**/*.{ts,tsx}', { cwd: WEB })
      .map((file) => readFileSync(`${WEB}/${file}`, 'utf8'))
      .join('\n')
    /** Ids that are made: `error.${code}` uses each that begins with `error.`. */
    const prefixes = [...code.matchAll(/`([a-zA-Z.]+\.)\$\{/g)].map(([, start]) => start!)
    const unused = NAMES.flatMap((name) => Object.keys(read('en', name)))
      .filter((id) => !id.startsWith('common.'))
      .filter((id) => !code.includes(`'${id}'`) && !code.includes(`"${id}"`) && !prefixes.some((start) => id.startsWith(start)))
    expect(unused).toEqual([])
  })

  it('have a sentence for each error code, and details for a field', () => {
    const ids = Object.keys(read('en', 'errors.json'))
    const codes = ids.map((id) => id.split('.')[1]!)
    expect(unique(codes)).toEqual([...Object.keys(ERRORS), 'unreachable'].sort())
    for (const code of codes) expect(ids).toContain(`error.${code}`)
  })

  it.each([
    ['documents.warning.', DOCUMENT_WARNING_CODES],
    ['documents.error.', DOCUMENT_ERROR_CODES.map((code) => code.toUpperCase())],
    ['documents.webError.', WEB_SOURCE_ERROR_REASONS.map((reason) => reason.toUpperCase())],
  ])('have a sentence for each %s, and for no other', (start, kinds) => {
    const ids = Object.keys(read('en', 'documents.json')).filter((id) => id.startsWith(start))
    expect(ids).toEqual(kinds.map((kind) => `${start}${kind}`).sort())
  })
})
