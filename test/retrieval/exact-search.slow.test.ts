import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { readCalibration } from '../../subgraphs/inference/adapters/embedded/read-calibration.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import type { RankedChunk } from '../../subgraphs/knowledge/domain/search/fuse.ts'
import { createAim } from '../../subgraphs/knowledge/domain/search/query-vectors.ts'
import { detectLanguage } from '../../subgraphs/knowledge/domain/text/language.ts'
import { grams, normaliseForEmbedding, queryTerms, words } from '../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { ChunkIndex } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { rankCandidates } from '../../subgraphs/knowledge/use-cases/search/rank-candidates.ts'
import { EMBEDDING_TIMEOUT_MS } from '../support/data/eval-search.ts'
import { evalEmbeddings } from '../support/data/eval-vectors.ts'

const MODEL = new URL('../../models/e5-small-ar-en/', import.meta.url)

const SUPPLIERS = [
  ['شركة النور', 'Al Noor Company', 'ورق للطباعة', 'printing paper'],
  ['مؤسسة الخليج', 'Gulf Establishment', 'مقاعد مكتبية', 'office chairs'],
  ['شركة الواحة', 'Oasis Limited', 'أجهزة تكييف', 'air conditioners'],
  ['مصنع الشرق', 'East Factory', 'أنابيب نحاسية', 'copper pipes'],
  ['دار البناء', 'House of Building', 'أسمنت أبيض', 'white cement'],
] as const

/** Each order is in one language, and every other in the other. */
const ORDERS = Array.from({ length: 60 }, (_, i) => {
  const number = `PO-2024-${String(3107 + i * 13).padStart(5, '0')}`
  const [arabic, english, goods, wares] = SUPPLIERS[i % SUPPLIERS.length]!
  const amount = (48_250 + i * 1_337).toLocaleString('en')
  const text =
    i % 2 === 0
      ? `أمر شراء رقم ${number}\nالمورد: ${arabic}. الأصناف: ${goods}. القيمة الإجمالية ${amount} ريال، والتسليم خلال ثلاثين يوما من تاريخ الأمر.`
      : `Purchase order ${number}\nSupplier: ${english}. Items: ${wares}. The total value is ${amount} riyals, and delivery is within thirty days of the order.`
  return { number, amount, text }
})

const SUBJECTS = ['مواعيد الدوام', 'صيانة المصاعد', 'بدل السكن', 'الأمن والسلامة', 'تدريب الموظفين', 'مواقف السيارات'] as const
/** Memo 21 is about item 20, and so on, so that every number is in two memos. */
const MEMOS = Array.from({ length: 50 }, (_, i) => {
  const number = 20 + i
  return `مذكرة رقم ${number}\nإلى جميع الإدارات بشأن ${SUBJECTS[i % SUBJECTS.length]}: يرجى الاطلاع على البند ${number - 1} من اللائحة والعمل به اعتبارا من بداية الشهر القادم.`
})

const TEXTS: Readonly<Record<string, string>> = {
  leave: 'يستحق الموظف إجازة سنوية مدتها ثلاثون يوما بعد إكمال سنة في خدمة المؤسسة، ولا يجوز التنازل عنها مقابل بدل نقدي.',
  fire: 'على العاملين في المستودعات إخلاء المبنى فور سماع جرس الإنذار والتجمع عند البوابة الشرقية.',
  school: 'تفتح المدرسة الابتدائية أبوابها للتسجيل في الأول من سبتمبر، ويشترط إحضار شهادة الميلاد.',
  water: 'تنقى مياه الشرب في محطة التحلية بالتناضح العكسي قبل ضخها إلى شبكة المدينة.',
  market: 'أنشئ السوق القديم عام 1894 قرب الميناء، ويضم 320 دكانا لبيع الأقمشة والتوابل.',
  library: 'تعير المكتبة العامة خمسة كتب لكل مشترك مدة أسبوعين، ويغرم المتأخر ريالا عن كل يوم.',
  loan: 'يسدد القرض على أقساط شهرية متساوية خلال خمس سنوات، ويعفى من الفوائد من يسدد مبكرا.',
  hospital: 'يستقبل قسم الطوارئ في المستشفى المرضى على مدار الساعة، وتحدد الأولوية بحسب خطورة الحالة.',
  english: 'Visitors leave their cars in the northern garage, where the first two hours are free of charge.',
  power: 'The turbine delivers forty megawatts at full load and is inspected every spring.',
}
const JUNK: readonly string[] = [
  'ــــــــــــــــــــــــــــــــــ ـــــــ ـــــــ ........ ........ 3',
  'التوقيع: ........................ التاريخ: ........................ الختم: ....................',
  'المقدمة ........ 3\nالإجازات ........ 7\nالأجور ........ 12\nالتدريب ........ 19\nالسلامة ........ 25',
  'Introduction ........ 3\nLeave ........ 7\nWages ........ 12\nTraining ........ 19\nSafety ........ 25',
  ...Array.from({ length: 6 }, (_, i) => `وثيقة سرية لا يجوز نسخ أي جزء منها. صفحة ${i + 1}`),
]

const QUESTIONS = {
  leave: 'إجازة الموظف السنوية بعد سنة في الخدمة',
  fire: 'إخلاء المبنى عند سماع جرس الإنذار',
  school: 'شهادة الميلاد للتسجيل في المدرسة الابتدائية',
  water: 'تنقية مياه الشرب في محطة التحلية',
  market: 'السوق القديم عام 1894 قرب الميناء',
  library: 'إعارة خمسة كتب من المكتبة العامة مدة أسبوعين',
  loan: 'سداد القرض على أقساط شهرية متساوية',
  hospital: 'قسم الطوارئ في المستشفى على مدار الساعة',
} as const

/** How people write the same query. */
const SPELLINGS: readonly (readonly [name: string, change: (text: string) => string])[] = [
  ['hamza omitted', (text) => text.replace(/[أإآ]/g, 'ا')],
  ['hamza on waw and yeh omitted', (text) => text.replaceAll('ؤ', 'و').replaceAll('ئ', 'ي')],
  ['heh for teh marbuta', (text) => text.replaceAll('ة', 'ه')],
  ['alef maqsura for yeh', (text) => text.replace(/ي(?= |$)/g, 'ى')],
  ['yeh for alef maqsura', (text) => text.replaceAll('ى', 'ي')],
  ['fatha on every third letter', (text) => text.replace(/(\p{L}\p{L}\p{L})/gu, '$1\u064e')],
  ['shadda and kasra', (text) => text.replace(/(\p{L}\p{L})(?=\p{L})/gu, '$1\u0651\u0650')],
  ['tanwin at the end', (text) => `${text}\u064b`],
  ['tatweel in every word', (text) => text.replace(/(\p{L})(\p{L})/gu, '$1ـ$2')],
  ['long tatweel', (text) => text.replace(/(\p{L}\p{L})(?=\p{L}{2})/gu, '$1ــــ')],
  ['Arabic-Indic digits', (text) => text.replace(/\d/g, (digit) => String.fromCharCode(0x660 + Number(digit)))],
  ['Persian digits', (text) => text.replace(/\d/g, (digit) => String.fromCharCode(0x6f0 + Number(digit)))],
  ['Persian yeh', (text) => text.replaceAll('ي', 'ی')],
  ['Persian kaf', (text) => text.replaceAll('ك', 'ک')],
  ['Persian yeh and kaf', (text) => text.replaceAll('ي', 'ی').replaceAll('ك', 'ک')],
  ['direction marks', (text) => `\u200f${text.replaceAll(' ', ' \u200f')}\u200e`],
  ['joiners inside words', (text) => text.replace(/(\p{L}\p{L})(\p{L})/gu, '$1\u200d$2')],
  ['presentation form of lam-alef', (text) => text.replaceAll('لا', '\ufefb')],
  ['"and" before the first word', (text) => `و${text}`],
  ['"with" before the first word', (text) => `ب${text}`],
  ['"and" before every word', (text) => text.replace(/(?<=^| )(?=\p{L}{3})/gu, 'و')],
  ['"so" before the first word', (text) => `ف${text}`],
  ['heh and no hamza', (text) => text.replaceAll('ة', 'ه').replace(/[أإآ]/g, 'ا')],
  ['a question mark', (text) => `${text}؟`],
  ['two spaces', (text) => text.replaceAll(' ', '  ')],
]
const VARIANTS = Object.entries(QUESTIONS).flatMap(([id, text]) => SPELLINGS.map(([name, change]) => ({ id, name, text: change(text) })))

const CHUNKS = new Map<string, string>([
  ...ORDERS.map(({ number, text }): [string, string] => [number, text]),
  ...MEMOS.map((text, i): [string, string] => [`memo ${20 + i}`, text]),
  ...Object.entries(TEXTS),
  ...JUNK.map((text, i): [string, string] => [`junk ${i}`, text]),
])

const toDigits = (text: string) => text.replace(/\d/g, (digit) => String.fromCharCode(0x660 + Number(digit))).replaceAll(',', '\u066c')

const QUERIES = [
  ...ORDERS.flatMap(({ number, amount }, i) => [
    i % 2 === 0 ? `What is the delivery time of purchase order ${number}?` : `ما مدة تسليم أمر الشراء ${number}؟`,
    i % 2 === 0 ? `purchase order of ${amount.replaceAll(',', '')} riyals` : `أمر شراء قيمته ${toDigits(amount)} ريال`,
  ]),
  ...MEMOS.flatMap((_, i) => [`مذكرة رقم ${20 + i}`, `مذكرة رقم ${toDigits(String(20 + i))}`]),
  ...Object.values(QUESTIONS),
  ...VARIANTS.map(({ text }) => text),
  'What did the supplier Gulf Establishment deliver?',
  'من هو المورد Oasis Limited؟',
  '"الأمن والسلامة"',
  '«مواقف السيارات» اللائحة',
  '"no such words anywhere"',
]

describe('Exact terms and spellings, with the embedded model', () => {
  let folder: string
  let index: ChunkIndex
  const results = new Map<string, readonly RankedChunk[]>()
  const idsOf = (query: string) => results.get(query)!.map(({ chunkId }) => chunkId)
  const firstOf = (query: string) => idsOf(query)[0]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kis-exact-'))
    index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
    const chunks = [...CHUNKS]
    const queries = [...new Set(QUERIES)]
    const texts = chunks.map(([, text]) => `passage: ${normaliseForEmbedding(text)}`)
    const { vectors } = await evalEmbeddings(texts, 'passage')
    const { vectors: aims } = await evalEmbeddings(
      queries.map((text) => `query: ${normaliseForEmbedding(text)}`),
      'query',
    )
    const where = { organizationId: 'org_a', collectionId: 'all' }
    await index.createCollection({ ...where, dimensions: vectors[0]!.length })
    await index.put(
      { ...where, documentId: 'doc', generation: 'g', attributes: {} },
      chunks.map(([chunkId, text], ordinal) => ({
        chunkId,
        ordinal,
        text,
        headingPath: [],
        context: '',
        pageStart: null,
        pageEnd: null,
        charStart: 0,
        charEnd: text.length,
        language: detectLanguage(text),
        vector: vectors[ordinal]!,
        words: words(text),
        grams: grams(text),
      })),
    )
    const calibration = await readCalibration(MODEL)
    for (const [i, query] of queries.entries()) {
      const language = detectLanguage(query)
      const aim = createAim(aims[i]!, language, calibration)
      const aimed = { collectionId: 'all', vector: aim.vector, anchor: aim.anchor, candidates: 100, filter: null }
      const candidates = await index.search({ ...aimed, ...queryTerms(query) }, new AbortController().signal)
      const ranking = { query, language, mode: 'hybrid', limit: 10, aim, spread: 0.03 } as const
      results.set(query, await rankCandidates((ids) => index.get('all', ids), ranking, candidates))
    }
  }, EMBEDDING_TIMEOUT_MS)

  afterAll(async () => {
    await index?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  it('finds each of 60 purchase orders first by its number, with a question in the other language', () => {
    const wrong = ORDERS.filter(({ number }, i) => firstOf(QUERIES[i * 2]!) !== number)
    expect(wrong).toEqual([])
  })

  it('finds an amount in any digits and separators', () => {
    const wrong = ORDERS.filter(({ number }, i) => firstOf(QUERIES[i * 2 + 1]!) !== number)
    expect(wrong).toEqual([])
  })

  it('finds each of 50 memos first by its number, not the one about that item', () => {
    const found = MEMOS.map((_, i) => [firstOf(`مذكرة رقم ${20 + i}`), firstOf(`مذكرة رقم ${toDigits(String(20 + i))}`)])
    expect(found).toEqual(MEMOS.map((_, i) => [`memo ${20 + i}`, `memo ${20 + i}`]))
  })

  it('finds names in Latin letters from an Arabic question', () => {
    const english = ORDERS.filter(({ text }) => text.includes('Oasis Limited')).map(({ number }) => number)
    expect(idsOf('من هو المورد Oasis Limited؟').slice(0, english.length).toSorted()).toEqual(english.toSorted())
  })

  it('requires quoted phrases, and finds nothing where no chunk has them', () => {
    for (const [query, phrase] of [
      ['"الأمن والسلامة"', 'الأمن والسلامة'],
      ['«مواقف السيارات» اللائحة', 'مواقف السيارات'],
    ] as const) {
      const texts = idsOf(query).map((id) => CHUNKS.get(id)!)
      expect(texts.length).toBeGreaterThan(3)
      for (const text of texts) expect(text).toContain(phrase)
    }
    expect(idsOf('"no such words anywhere"')).toEqual([])
  })

  it('ranks contents, signature lines and repeated notices below every answer', () => {
    for (const [id, query] of Object.entries(QUESTIONS)) {
      expect([query, firstOf(query)]).toEqual([query, id])
      expect(
        idsOf(query)
          .slice(0, 3)
          .filter((found) => found.startsWith('junk')),
      ).toEqual([])
    }
  })

  it('returns the same first hit for at least 98 of 100 spellings of a query', () => {
    const changed = VARIANTS.filter(({ id, text }) => firstOf(text) !== id).map(({ name, text }) => `${name}: ${text}`)
    expect(VARIANTS).toHaveLength(200)
    expect(changed.length <= VARIANTS.length * 0.02 ? [] : changed).toEqual([])
  })

  it('scores an answer above 0.5, and unrelated chunks far below', () => {
    for (const query of Object.values(QUESTIONS)) {
      const [first, ...others] = results.get(query)!.map(({ score }) => score)
      expect(first).toBeGreaterThan(0.5)
      expect(others.at(-1)).toBeLessThan(0.3)
    }
  })
})
