/**
 * Detects small talk, follow-ups and overviews in Arabic and English, for models that cannot decide by themselves when
 * to search.
 */

export type SmallTalk = 'greeting' | 'peace' | 'thanks' | 'farewell'

/** Longest message that can be small talk or a follow-up, in UTF-16 units. */
const MAX_SHORT_CHARACTERS = 160
/** Longest follow-up, in words. */
const MAX_FOLLOW_UP_WORDS = 8

/** Harakat, Quranic marks and tatweel. */
const MARKS = /[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]/g

/** Normalizes a text: no harakat or tatweel, digits 0 to 9. */
export function plainText(text: string): string {
  return text
    .normalize('NFKC')
    .replace(MARKS, '')
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => String(digit.charCodeAt(0) & 0xf))
}

/** Folds a text for comparing words: Arabic letters that writers interchange become one letter. */
export function foldWords(text: string): string {
  return plainText(text)
    .toLowerCase()
    .replace(/[أإآٱ]/g, 'ا')
    .replace(/ى/g, 'ي')
    .replace(/ة/g, 'ه')
    .replace(/ؤ/g, 'و')
    .replace(/ئ/g, 'ي')
}

/** Phrases in the form that `foldWords` returns, of at most `MAX_PHRASE_WORDS` words. */
const SMALL_TALK: readonly (readonly [SmallTalk, string])[] = [
  [
    'greeting',
    'hi|hello|hey|greetings|good morning|good afternoon|good evening|good day|how are you|how are you doing|how is it going|what s up|nice to meet you|' +
      'مرحبا|مرحبتين|مراحب|اهلا|اهلين|هلا|حياك الله|حياكم الله|سلام|هاي|هلو|صباح الخير|صباح النور|صباح الورد|صباحو|مساء الخير|مساء النور|مساء الورد|' +
      'كيف حالك|كيف حالكم|كيف الحال|كيف الاحوال|كيفك|شلونك|شلونكم|شخبارك|اخبارك|ايش اخبارك|ازيك|عامل ايه|لاباس|تشرفت بك',
  ],
  ['peace', 'السلام عليكم|سلام عليكم|وعليكم السلام|عليكم السلام|salam|salaam|assalamu alaikum|as salamu alaykum'],
  [
    'thanks',
    'thanks|thank you|thank u|thx|ty|cheers|much appreciated|appreciate it|i appreciate it|great|perfect|excellent|awesome|cool|nice|got it|ok|okay|' +
      'شكرا|شكرن|شكر|الشكر|وشكرا|اشكرك|اشكركم|نشكرك|متشكر|متشكره|متشكرين|مشكور|مشكوره|مشكورين|ممنون|ممنونك|ممنونه|مرسي|ميرسي|تسلم|تسلمي|تسلمون|تسلم ايدك|يسلمو|يسلموا|' +
      'يعطيك العافيه|يعطيكم العافيه|عافاك الله|الله يعافيك|ما قصرت|ما قصرتوا|بارك الله فيك|بارك الله فيكم|جزاك الله خيرا|جزاك الله خير|جزاكم الله خيرا|' +
      'كثر خيرك|كتر خيرك|الله يسلمك|رحم الله والديك|ممتاز|تمام|رائع|جميل|احسنت|حسنا|اوكي|اوك|طيب',
  ],
  [
    'farewell',
    'bye|goodbye|good bye|good night|see you|see you later|take care|مع السلامه|الي اللقاء|وداعا|باي|في امان الله|تصبح علي خير|تصبحون علي خير|استودعك الله',
  ],
]
const FILLERS =
  'a|so|very|much|lot|lots|all|many|again|there|everyone|you|to|for|the|your|this|that|is|it|was|of|my|dear|friend|sir|today|indeed|really|and|help|helping|answer|answers|information|time|' +
  'جدا|جزيلا|جزيل|كثيرا|كتير|كثير|لك|لكم|ليك|الك|يا|اخي|اختي|صديقي|عزيزي|استاذ|دكتور|باشا|غالي|الغالي|علي|المساعده|مساعدتك|الاجابه|اجابتك|المعلومه|المعلومات|' +
  'الله|والله|بك|بكم|فيك|ورحمه|رحمه|وبركاته|بركاته|وسهلا|سهلا|اليوم|من|القلب|قلبي|اوي|قوي|مره|واجد|و'

const PHRASES = new Map(SMALL_TALK.flatMap(([kind, phrases]) => phrases.split('|').map((phrase) => [phrase, kind] as const)))
const FILLER_WORDS = new Set(FILLERS.split('|'))
const MAX_PHRASE_WORDS = 4

/**
 * The kind of a message that consists of greetings, thanks or farewells only. Null: any other message. In a message
 * with several, the last kind counts: `Hi, thanks!`, `Thanks, bye!`.
 */
export function readSmallTalk(text: string): SmallTalk | null {
  if (text.length > MAX_SHORT_CHARACTERS) return null
  // Reduces repeated letters: شكراااا, thanksss
  const words = wordsOf(text).map((word) => word.replace(/(\p{L})\1{2,}/gu, '$1'))
  let last: SmallTalk | null = null
  for (let at = 0; at < words.length; ) {
    let length = Math.min(MAX_PHRASE_WORDS, words.length - at)
    while (length > 0 && !PHRASES.has(words.slice(at, at + length).join(' '))) length -= 1
    const kind = PHRASES.get(words.slice(at, at + length).join(' '))
    if (kind === undefined && !FILLER_WORDS.has(words[at]!)) return null
    last = kind ?? last
    at += Math.max(length, 1)
  }
  return last
}

const REFERRING =
  /^(?:and|or|but|also|then|what about|how about|what else|anything else|more|why|how so|when|where|who|which|و|او|ثم|طيب|ماذا عن|بالنسبه|ماذا ايضا|لماذا|ليش|متي|اين|وين|كم|كيف)$/
const OPENING =
  /^(?:(?:and|or|but|also|then|what about|how about|what else|طيب|ماذا عن|ماذا ايضا|بالنسبه|شو عن|ايش عن|او|ثم)(?= )|و(?:ماذا|كم|متي|اين|وين|كيف|هل|ما|من|في|لماذا|ليش|عن|ايش|بالنسبه|لو|اذا|ال(?!د)\p{L}{2,})(?= |$))/u
const PRONOUN =
  /(?:^| )(?:it|its|they|them|their|he|him|his|she|her|that|those|these|this|one|ones|هو|هي|هم|ذلك|تلك|هذا|هذه|هذي|له|لها|لهم|فيه|فيها|منه|منها|عنه|عنها|عليه|عليها|به|بها)(?= |$)/

/** Reports whether a message refers to the question before it: `and in 2021?`, «وماذا عن الثانية؟». */
export function isFollowUp(text: string): boolean {
  if (text.length > MAX_SHORT_CHARACTERS) return false
  const words = wordsOf(text)
  const joined = words.join(' ')
  return words.length <= MAX_FOLLOW_UP_WORDS && (REFERRING.test(joined) || OPENING.test(joined) || PRONOUN.test(joined))
}

/** The last of a user's earlier messages that is a question and can be understood alone. Empty: there is none. */
export function findEarlierQuestion(earlier: readonly string[]): string {
  return earlier.findLast((text) => text.trim() !== '' && !isFollowUp(text) && readSmallTalk(text) === null) ?? ''
}

const OVERVIEW_WORDS = new Set(
  (
    'summarise summarize summary summaries overview brief outline recap tldr gist cover covers contain contains include includes say says about content contents topic topics ' +
    'document documents file files collection collections text texts page pages here have there inside what is are does do did you can could please the this these that those my our your all of in a an me it give tell show main key points list which ' +
    'لخص لخصي لخصها لخصه ملخص ملخصا تلخيص خلاصه اختصر نبذه اعطني اعطيني اكتب هات قدم لي لنا عن ما ماذا هي هو في من محتوي محتويات يحتوي تحتوي يتحدث تتحدث يتناول تتناول موضوع مواضيع ' +
    'المستند مستند المستندات مستندات الوثيقه وثيقه الوثايق الملف ملف الملفات المجموعه مجموعه النص للمستند للمستندات للملف للملفات للمجموعه هذا هذه هذي كل اهم النقاط الرئيسيه يوجد توجد موجود لديك عندك عليه عليها فيه فيها بايجاز باختصار رجاء ' +
    'ايش شو وش ممكن المحتوي المحتويات'
  ).split(' '),
)
const OVERVIEW_VERB =
  /^(?:summari[sz]e|summary|summaries|overview|outline|recap|tldr|gist|لخص|لخصي|لخصها|لخصه|ملخص|ملخصا|تلخيص|خلاصه|اختصر|نبذه)$/
const OVERVIEW_NOUN =
  /^(?:documents?|files?|collections?|texts?|المستندا?ت?|الوثيقه|الوثايق|الملف|الملفات|المجموعه|النص|مستند|مستندات|للمستند|للمستندات|للملف|للملفات|للمجموعه)$/

/** Reports whether a message requests a summary of the documents: `What is in this collection?`, «لخص المستند». */
export function isOverview(text: string): boolean {
  if (text.length > MAX_SHORT_CHARACTERS) return false
  const words = wordsOf(text)
  return words.some((word) => OVERVIEW_VERB.test(word) || OVERVIEW_NOUN.test(word)) && words.every((word) => OVERVIEW_WORDS.has(word))
}

function wordsOf(text: string): readonly string[] {
  return foldWords(text).match(/[\p{L}\p{N}]+/gu) ?? []
}
