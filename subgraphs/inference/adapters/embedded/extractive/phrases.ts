import type { SmallTalk } from '../../../domain/chat/question.ts'
import type { Language } from './language.ts'

type Phrase = SmallTalk | 'noContext' | 'nothingFound' | 'overview' | 'table'

/** The model's own sentences, in each language. */
export const PHRASES: Readonly<Record<Language, Readonly<Record<Phrase, string>>>> = {
  en: {
    greeting: 'Hello! Ask me a question, and I will quote what the documents say about it.',
    peace: 'Peace be upon you too! What would you like to know from the documents?',
    thanks: 'You are welcome!',
    farewell: 'Goodbye!',
    noContext: 'I have no documents to answer this from. Add some, or put a text before your question.',
    nothingFound: 'I did not find an answer to this in the documents.',
    overview: 'The documents say, among other things:',
    table: 'A table with these columns: ',
  },
  ar: {
    greeting: 'أهلًا بك! اطرح سؤالك، وسأنقل لك ما تقوله المستندات عنه.',
    peace: 'وعليكم السلام ورحمة الله! ما الذي تود معرفته من المستندات؟',
    thanks: 'العفو، على الرحب والسعة!',
    farewell: 'مع السلامة!',
    noContext: 'ليس لدي مستندات أجيب منها. أضف مستندًا، أو ضع نصًا قبل سؤالك.',
    nothingFound: 'لم أجد في المستندات إجابة عن هذا السؤال.',
    overview: 'من أبرز ما ورد في المستندات:',
    table: 'جدول بالأعمدة الآتية: ',
  },
}
