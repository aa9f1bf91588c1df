import { describe, expect, it } from 'vitest'
import { findEarlierQuestion, isFollowUp, isOverview, readSmallTalk } from './question.ts'

describe('Small talk', () => {
  it.each([
    [
      'greeting',
      [
        'Hi',
        'Hello there!',
        'hey, how are you?',
        'Good morning',
        'مرحبا',
        'مَرْحَبًا',
        'أهلاً وسهلاً',
        'اهلين',
        'هلا والله',
        'صباح الخير',
        'شلونك؟',
      ],
    ],
    ['peace', ['السلام عليكم', 'السَّلامُ عليكم ورحمة الله وبركاته', 'سلام عليكم', 'Salam']],
    [
      'thanks',
      [
        'thanks',
        'Thank you so much!',
        'thx',
        'ok great',
        'شكرا',
        'شكرًا جزيلاً',
        'شُكراً لك',
        'شكراااا',
        'مشكور',
        'مشكورة يا أختي',
        'تسلم',
        'يعطيك العافية',
        'الله يعطيك العافية',
        'جزاك الله خيرًا',
        'ما قصرت',
        'ممتاز، شكرا',
      ],
    ],
    ['farewell', ['bye', 'Thanks, bye!', 'مع السلامة', 'إلى اللقاء', 'شكرا، مع السلامة']],
  ] as const)('includes %s', (kind, messages) => {
    expect(messages.map((message) => [message, readSmallTalk(message)])).toEqual(messages.map((message) => [message, kind]))
  })

  it.each([
    ...['Hi, when is lunch?', 'thanks, and where is the office?', 'What is a greeting?', 'Great Britain', 'good leave policy', ''],
    ...['شكرا، متى يفتح المكتب؟', 'السلام عليكم، كم سعر التذكرة؟', 'ما معنى شكرا؟', 'من هو تمام سلام؟', 'سلامة العمال'],
  ])('excludes a question: %j', (message) => expect(readSmallTalk(message)).toBeNull())

  it('is detected in linear time', () => {
    const begun = process.cpuUsage()
    for (const pump of ['bye ', 'ok ', 'الله ', 'هلا ', 'يا هلا ', 'الشكر لك ', 'thank you ', 'good day ', 'and ', 'ا'])
      for (const end of ['x', 'سؤال', '']) readSmallTalk(`${pump.repeat(200).slice(0, 150)} ${end}`)
    expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(500)
  })
})

describe('Follow-up questions', () => {
  it.each([
    ...['and in 2021?', 'What about the second?', 'And who signs it?', 'Why?', 'How much does it cost?', 'or for students'],
    ...['وماذا عن الثانية؟', 'وفي عام ٢٠٢١؟', 'وكم سعر التذكرة؟', 'لماذا؟', 'طيب ومتى يغلق؟', 'ماذا عن الأطفال؟', 'ومن يوقّعه؟'],
  ])('include %j', (message) => expect(isFollowUp(message)).toBe(true))

  it.each([
    ...['How many days of paid leave do I get?', 'Who approves travel?', 'Andorra has how many people?'],
    ...['متى يفتح المتحف؟', 'وزارة التعليم أين تقع؟', 'كم عدد الموظفين في جدة؟', ''],
    'and '.repeat(100),
  ])('exclude %j', (message) => expect(isFollowUp(message)).toBe(false))

  it('refer to the last question that is clear alone', () => {
    expect(findEarlierQuestion(['Hi', 'What was the revenue in 2020?', 'and in 2021?', 'thanks'])).toBe('What was the revenue in 2020?')
    expect(findEarlierQuestion(['شكرا'])).toBe('')
  })
})

describe('Overview questions', () => {
  it.each([
    ...[
      'What is in this collection?',
      'Summarise this document',
      'give me a summary of the files please',
      'What are these documents about?',
    ],
    ...['ماذا يوجد في هذه المجموعة؟', 'لخّص المستند', 'ما محتوى هذا الملف؟', 'عن ماذا تتحدث هذه الوثائق؟', 'أعطني ملخصا للمستندات'],
  ])('include %j', (message) => expect(isOverview(message)).toBe(true))

  it.each(['What does the document say about leave?', 'Summarise the travel policy', 'ماذا يقول المستند عن الإجازات؟', 'What is this?'])(
    'exclude %j',
    (message) => expect(isOverview(message)).toBe(false),
  )
})
