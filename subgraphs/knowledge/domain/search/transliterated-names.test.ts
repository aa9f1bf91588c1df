import { describe, expect, it } from 'vitest'
import { weighNames } from './transliterated-names.ts'

const createChunk = (chunkId: string, language: string | null, text: string) => ({ chunkId, language, text })

describe('Transliterated names', () => {
  it.each([
    ['متى زار تشرشل المدينة؟', 'In 1945 Churchill came back.'],
    ['أين يصب نهر الفولغا؟', 'The Volga flows into the sea.'],
    ['ما قواعد ديبيان؟', 'The rules of Debian.'],
    ['من أسس جامعة أكسفورد؟', 'The first colleges of Oxford'],
    ['ما اسم تلميذ لوثر؟', 'A pupil of LUTHER'],
    ['أين ولد شوبان؟', 'Chopin was born near here.'],
  ])('are found from «%s»', (query, text) => {
    const weights = weighNames(
      query,
      [createChunk('named', 'en', text), createChunk('other', 'en', 'Nobody lives Here, the Book says.')],
      'ar',
    )
    expect([...weights.keys()]).toEqual(['named'])
    expect(weights.get('named')).toBeGreaterThan(0)
  })

  it('are found in Arabic chunks, even after an article', () => {
    const chunks = [createChunk('named', 'ar', 'ويصب نهر الدانوب في البحر'), createChunk('other', 'ar', 'لا شيء هنا')]
    expect([...weighNames('Where does the Danube end?', chunks, 'en').keys()]).toEqual(['named'])
  })

  it('weigh more the fewer chunks contain them', () => {
    const rare = weighNames('تشرشل', [createChunk('a', 'en', 'Churchill')], 'ar').get('a')!
    const common = weighNames(
      'تشرشل',
      Array.from({ length: 20 }, (_, n) => createChunk(`${n}`, 'en', 'Churchill')),
      'ar',
    )
    expect(common.get('0')).toBeLessThan(rare)
  })

  it.each([
    ['uncapitalized words of an English text', 'ما هو الدبان؟', 'en', 'a debian of old'],
    ['chunks in the language of the query', 'ما قواعد ديبيان؟', 'ar', 'قواعد ديبيان'],
    ['chunks without a language', 'ما قواعد ديبيان؟', null, 'Debian'],
    ['names of two consonants', 'أين ماني؟', 'en', 'Money and Mina'],
  ])('are not searched in %s', (_, query, language, text) => {
    expect(weighNames(query, [createChunk('a', language, text)], 'ar').size).toBe(0)
  })

  it('take linear time, with at most 32 names of a long query', () => {
    const names = Array.from({ length: 5_000 }, (_, n) => `Ch${'gh'.repeat(20)}arl${String.fromCharCode(97 + (n % 26))}b${n}`).join(' ')
    const weights = weighNames(names, [createChunk('a', 'ar', 'شارلمان '.repeat(50_000))], 'en')
    expect(weights.size).toBe(0)
  })
})
