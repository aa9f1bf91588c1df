import type { Language } from './language.ts'

/**
 * Sentences and questions about nothing in particular. The similarity of a question to these sentences, and of a
 * sentence to these questions, is what this model gives any two texts. Only more than that is evidence (see
 * `support.ts`).
 */
export const BACKGROUND: Readonly<Record<Language, { readonly sentences: readonly string[]; readonly questions: readonly string[] }>> = {
  en: {
    sentences: [
      'The train to the coast leaves from platform four.',
      'She painted the kitchen walls a pale shade of green.',
      'Prices for wheat rose by three percent last month.',
      'The museum holds a collection of medieval coins.',
      'Press the red button to restart the machine.',
      'Rain is expected in the north on Thursday evening.',
      'The committee will publish its report in autumn.',
      'He learned to play the violin at the age of six.',
    ],
    questions: [
      'Which platform does the train leave from?',
      'How often should the garden be watered?',
      'Who wrote the letter to the editor?',
      'What colour are the kitchen walls?',
      'When will the committee publish its report?',
      'Why did the price of wheat rise?',
      'How much does a ticket cost?',
      'Where can I see medieval coins?',
    ],
  },
  ar: {
    sentences: [
      'يغادر القطار المتجه إلى الساحل من الرصيف الرابع.',
      'دهنت جدران المطبخ بلون أخضر فاتح.',
      'ارتفعت أسعار القمح ثلاثة بالمئة في الشهر الماضي.',
      'يضم المتحف مجموعة من العملات القديمة.',
      'اضغط على الزر الأحمر لإعادة تشغيل الآلة.',
      'يتوقع هطول المطر في الشمال مساء الخميس.',
      'ستنشر اللجنة تقريرها في الخريف.',
      'تعلم العزف على الكمان في السادسة من عمره.',
    ],
    questions: [
      'من أي رصيف يغادر القطار؟',
      'كم مرة يجب أن تسقى الحديقة؟',
      'من كتب الرسالة إلى المحرر؟',
      'ما لون جدران المطبخ؟',
      'متى ستنشر اللجنة تقريرها؟',
      'لماذا ارتفع سعر القمح؟',
      'كم ثمن التذكرة؟',
      'أين يمكنني رؤية العملات القديمة؟',
    ],
  },
}
