import { drawPdf, ltr, rtl } from '../../../subgraphs/knowledge/adapters/parser/test-support/draw-pdf.ts'
import type { OwnFile } from './visitor.ts'

/** A file of two pages, and what one can ask of its second page. */
export interface Known extends OwnFile {
  readonly question: string
  /** Words of the passage that answers. */
  readonly words: string
}

const TITLE = { size: 18, isBold: true }
/** So many that a page is a passage of its own. */
const GOODS = ['dates', 'timber', 'rice', 'cloth', 'lime', 'salt', 'copper', 'pearls', 'coffee', 'rope', 'ivory', 'spices', 'sugar', 'iron']
const ARABIC_GOODS = ['التمور', 'الأخشاب', 'الأرز', 'القماش', 'اللبان', 'الملح', 'النحاس', 'اللؤلؤ', 'القهوة', 'الحبال', 'العاج', 'التوابل']
const LINE = 24

/** An English and an Arabic PDF about a harbour. */
export const ENGLISH: Known = {
  name: 'harbour.pdf',
  bytes: drawPdf([
    [
      ltr(60, 60, 'The northern quay', TITLE),
      ...GOODS.map((goods, line) =>
        ltr(
          60,
          100 + line * LINE,
          `Ships from Zanzibar unload ${goods} at the northern quay in the week ${line + 3} of the winter season.`,
        ),
      ),
    ],
    [ltr(60, 60, 'The lighthouse', TITLE), ltr(60, 100, 'The lighthouse of Sur is 40 metres high and was lit for the first time in 1931.')],
  ]),
  question: 'How high is the lighthouse?',
  words: 'The lighthouse of Sur is 40 metres high',
}
export const ARABIC: Known = {
  name: 'الميناء.pdf',
  bytes: drawPdf([
    [
      rtl(540, 60, 'الرصيف الشمالي', TITLE),
      ...ARABIC_GOODS.map((goods, line) =>
        rtl(540, 100 + line * LINE, `تفرغ السفن القادمة من زنجبار ${goods} في الرصيف الشمالي خلال أسابيع الشتاء الأولى من كل سنة.`),
      ),
    ],
    [rtl(540, 60, 'متحف الميناء', TITLE), rtl(540, 100, 'يفتح متحف الميناء أبوابه للزوار من الساعة التاسعة صباحا كل يوم ما عدا الجمعة.')],
  ]),
  question: 'متى يفتح متحف الميناء أبوابه؟',
  words: 'يفتح متحف الميناء أبوابه للزوار',
}
