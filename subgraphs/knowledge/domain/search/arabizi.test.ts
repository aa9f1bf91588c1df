import { describe, expect, it } from 'vitest'
import { readArabizi } from './arabizi.ts'

describe('Arabizi query', () => {
  it.each([
    ['qanoon al 3amal', 'قنون العمل'],
    ['7isab fel bank', 'حسب في البنك'],
    ['ta2meen si77i', 'تامين سحي'],
    ['keef a3mel passport jdeed?', 'كيف اعمل بسبورت جديد?'],
    ['ijazat omooma lel 3amila', 'اجزات امومة للعملة'],
    ['bel 3arabi el-sha22a', 'بالعربي الشاة'],
    ['Wein el 7adee2a', 'أين الحدياة'],
    ['3ayez a7awel PDF men PO-2024-00017', 'أريد احول PDF من PO-2024-00017'],
  ])('«%s» is read as «%s»', (query, arabic) => {
    expect(readArabizi(query)).toBe(arabic)
  })

  it.each([
    'passport renewal',
    'seq2seq and word2vec',
    'word2vec embeddings',
    'seq2seq model',
    'web3 wallet',
    '7zip download',
    'mp3 player',
    '5km run 3pm',
    'covid19 cases',
    'Al Gore',
    'El Al flights',
    'how is el 3amal spelled',
    'el precio del coche en el centro',
    '"el 3amal" 3ayez',
    'el 3amal في السعودية',
    'PO-2024-03107',
    'constructor toString __proto__',
    '2024',
    '',
  ])('«%s» is not detected as one', (query) => {
    expect(readArabizi(query)).toBeNull()
  })

  it('is read in linear time', () => {
    expect(readArabizi('3a'.repeat(4_096))).toMatch(/^(ع)+/)
    expect(readArabizi(`fel ${'el '.repeat(2_700)}`)).not.toBeNull()
  })
})
