import type { Language } from './language.ts'

/** What the model says in its own words. */
export const PHRASES: Readonly<Record<Language, { readonly greeting: string; readonly noContext: string; readonly nothingFound: string }>> =
  {
    en: {
      greeting:
        'Hello. I answer a question with the sentences of the given text that support it best, quoted, with their sources. Put the text before the question.',
      noContext: 'There is no text to answer from. I only quote from the given context: put the text before the question.',
      nothingFound: 'I found nothing in the given context that answers this question.',
    },
    ar: {
      greeting: 'مرحبا. أجيب عن السؤال بأكثر جمل النص المعطى دعما للإجابة، مقتبسة مع مصادرها. ضع النص قبل السؤال.',
      noContext: 'لا يوجد نص أجيب منه. أنا أقتبس من السياق المعطى فقط: ضع النص قبل السؤال.',
      nothingFound: 'لم أجد في السياق المعطى ما يجيب عن هذا السؤال.',
    },
  }

const GREETING =
  /^(?:hi|hello|hey|thanks|thank you|good (?:morning|afternoon|evening)|مرحبا|مرحبًا|أهلا|اهلا|أهلًا|السلام عليكم|سلام|صباح الخير|مساء الخير|شكرا|شكرًا)(?:\s+\S+){0,3}$/i

/** True if nothing was asked. */
export function isGreeting(question: string): boolean {
  const words = question
    .replace(/[\p{P}\p{S}]+/gu, ' ')
    .trim()
    .replace(/\s+/g, ' ')
  return words === '' || GREETING.test(words)
}

/** One quoted sentence with its source, in the quotation marks of its language. */
export function quote(sentence: string, source: string | null, language: Language): string {
  const quoted = language === 'ar' ? `«${sentence}»` : `“${sentence}”`
  return source === null ? quoted : `${quoted} — ${source}`
}
