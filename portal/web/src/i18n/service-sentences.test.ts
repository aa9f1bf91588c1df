import { expect, it } from 'vitest'
import arabic from '../../messages/service-ar.json' with { type: 'json' }
import { readSentences, translate } from './service-sentences.ts'

const SENTENCES = readSentences(arabic)
const say = (said: string) => translate(SENTENCES, said, (value) => `<${value}>`)

it.each([
  ['The file is empty.', 'الملف فارغ.'],
  ['The engine `mock` returned status 500.', 'أجاب المحرك <mock> برمز الحالة <500>.'],
  ['The engine `mock` failed: Over.\nCapacity.', 'فشل المحرك <mock> وقال: <Over.\nCapacity.>'],
  ['3 of 9 pages have no text that OCR can read: 1, 2, 3 and others.', 'لا نص مقروءًا في صور <3> من <9> صفحة: <1, 2, 3> وغيرها.'],
  [
    "The most that this call may cost does not fit the key's spend limit of 5 USD a month: 4 are spent and 1 held by calls in progress, until 2026-12-01T00:00:00.000Z.",
    'أقصى تكلفة محتملة لهذا الاستدعاء تتجاوز حد إنفاق المفتاح، وهو <5> دولار أمريكي كل شهر: أُنفق منه <4> وحُجز <1> لاستدعاءات جارية، حتى <2026-12-01T00:00:00.000Z>.',
  ],
  [
    '1 of 7 pages could not be read within 20 s of CPU: 4. Upload simpler pages, or a scan at 300 dpi.',
    'تعذّرت قراءة <1> من <7> صفحة خلال <20> ثانية من وقت المعالج: <4>. ارفع صفحات أبسط، أو مسحًا بدقة 300 نقطة في البوصة.',
  ],
  ['The run took longer than 60 s. (The run is `run_1`.)', 'استغرق التشغيل أكثر من <60> ثانية. (التشغيل: <run_1>)'],
])('translates %j to Arabic', (said, expected) => expect(say(said)).toBe(expected))

it.each(['Nobody knows this sentence.', 'Rate limit reached: the moon is full. Try again in 3 s.', ''])('leaves %j unchanged', (said) =>
  expect(say(said)).toBeNull(),
)
