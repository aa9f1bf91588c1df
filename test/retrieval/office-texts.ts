/** Texts of our own, as people write them in an office: with headings, numbered lists, a table and footnotes. */

export type OfficeBlock =
  | { readonly kind: 'heading'; readonly level: 1 | 2; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string; readonly footnote?: string }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | { readonly kind: 'table'; readonly rows: readonly (readonly string[])[] }

export interface OfficeText {
  readonly language: 'ar' | 'en'
  readonly blocks: readonly OfficeBlock[]
}

const english: OfficeText = {
  language: 'en',
  blocks: [
    { kind: 'heading', level: 1, text: 'Handbook of the harbour office' },
    {
      kind: 'paragraph',
      text: 'This handbook tells those who work at the harbour what they may expect of each other. It replaces the circular of 14 March 2019, and everybody who starts here reads it in the first week.',
      footnote: 'The circular stays in the archive under the number HB-2019/07, together with the minutes of both meetings.',
    },
    { kind: 'heading', level: 2, text: 'Working hours and leave' },
    {
      kind: 'paragraph',
      text: 'The office opens at 7:30 and closes at 16:00, from Sunday to Thursday. Whoever guards the eastern gate keeps the hours of the tide instead, which the pilots’ board publishes on the first day of every month.',
    },
    {
      kind: 'paragraph',
      text: 'Annual leave is thirty calendar days. You ask for it two weeks ahead; your manager answers within three working days, and a refusal names its reason.',
      footnote: 'Leave that was not taken by the end of June lapses, unless the manager had refused it in writing.',
    },
    {
      kind: 'list',
      items: [
        'Fill in form L-12 and attach the plan of your replacement.',
        'Send both to leave@harbour.example before noon on Wednesday.',
        'Wait for the answer before you book a flight, because a ticket is not a reason.',
        'Hand over keys, radio and logbook on your last day.',
      ],
    },
    { kind: 'heading', level: 2, text: 'Travel and receipts' },
    {
      kind: 'paragraph',
      text: 'The company pays for travel (economy class, second-class rail) when the trip was approved. Receipts are due within ten days; those above 250.00 USD need the signature of the head of department.',
    },
    {
      kind: 'table',
      rows: [
        ['Destination', 'Daily allowance', 'Hotel limit', 'Approved by'],
        ['Muscat', '35 OMR', '60 OMR', 'Section head'],
        ['Rotterdam', '95 EUR', '180 EUR', 'Director'],
        ['Singapore', '120 SGD', '240 SGD', 'Director'],
        ['Sur and Sohar', '18 OMR', '40 OMR', 'Section head'],
      ],
    },
    {
      kind: 'paragraph',
      text: 'A meal with guests is reimbursed up to the allowance of the place. Alcohol, fines and upgrades are not, even if somebody else enjoyed them.',
    },
    { kind: 'heading', level: 2, text: 'Safety on the quay' },
    {
      kind: 'paragraph',
      text: 'Nobody walks below a hanging load. Helmets, boots and yellow vests are worn between the white lines, by visitors too; the guard lends them at the gate against a signature.',
    },
    {
      kind: 'list',
      items: [
        'If a fire breaks out, press the nearest red button and leave by the stairs.',
        'Gather at point C, behind the customs shed, and answer when your name is read.',
        'Go back only after the fire brigade has said so.',
      ],
    },
    {
      kind: 'paragraph',
      text: 'Every accident is written down on the same day, however small it was. In 2023 there were 41 of them, 38% fewer than in 2021, and none was fatal.',
      footnote: 'Figures of the safety committee, session of 9 January 2024.',
    },
  ],
}

const arabic: OfficeText = {
  language: 'ar',
  blocks: [
    { kind: 'heading', level: 1, text: 'دليل العمل في مكتب الميناء' },
    {
      kind: 'paragraph',
      text: 'يبيّن هذا الدليل للعاملين في الميناء ما يحقّ لكلٍّ منهم وما يجب عليه تجاه الآخرين. وقد حلّ محلّ التعميم الصادر في 14 مارس 2019، ويقرؤه كلّ موظّف جديد خلال أسبوعه الأول.',
      footnote: 'يُحفظ التعميم في الأرشيف تحت الرقم HB-2019/07 مع محضرَي الاجتماعين.',
    },
    { kind: 'heading', level: 2, text: 'أوقات الدوام والإجازات' },
    {
      kind: 'paragraph',
      text: 'يفتح المكتب أبوابه في الساعة 7:30 ويغلقها في الساعة 16:00 من الأحد إلى الخميس. أمّا حرّاس البوابة الشرقية فيلتزمون بمواعيد المدّ والجزر التي تنشرها هيئة المرشدين في أول يوم من كل شهر.',
    },
    {
      kind: 'paragraph',
      text: 'الإجازة السنوية ثلاثون يوماً تقويمياً. يُقدَّم الطلب قبل أسبوعين، ويجيب المسؤول خلال ثلاثة أيام عمل، ويُذكر سبب الرفض إن رُفض الطلب.',
      footnote: 'تسقط الإجازة التي لم تُؤخذ حتى نهاية يونيو، إلا إذا كان المسؤول قد رفضها كتابةً.',
    },
    {
      kind: 'list',
      items: [
        'املأ النموذج L-12 وأرفق به خطة من ينوب عنك.',
        'أرسل الاثنين إلى leave@harbour.example قبل ظهر الأربعاء.',
        'انتظر الجواب قبل أن تحجز تذكرة، فالتذكرة ليست سبباً للموافقة.',
        'سلّم المفاتيح وجهاز اللاسلكي وسجلّ المناوبة في آخر يوم لك.',
      ],
    },
    { kind: 'heading', level: 2, text: 'السفر والإيصالات' },
    {
      kind: 'paragraph',
      text: 'تتحمّل الشركة نفقات السفر (الدرجة السياحية، والدرجة الثانية في القطار) إذا تمّت الموافقة على الرحلة. تُسلَّم الإيصالات خلال عشرة أيام، ويحتاج ما زاد منها على 250.00 دولاراً إلى توقيع رئيس القسم.',
    },
    {
      kind: 'table',
      rows: [
        ['الوجهة', 'البدل اليومي', 'سقف الفندق', 'جهة الموافقة'],
        ['مسقط', '35 ريالاً', '60 ريالاً', 'رئيس الشعبة'],
        ['روتردام', '95 يورو', '180 يورو', 'المدير'],
        ['سنغافورة', '120 دولاراً', '240 دولاراً', 'المدير'],
        ['صور وصحار', '18 ريالاً', '40 ريالاً', 'رئيس الشعبة'],
      ],
    },
    {
      kind: 'paragraph',
      text: 'تُعوَّض وجبة الضيوف في حدود بدل المكان. ولا تُعوَّض الغرامات ولا الترقية إلى درجة أعلى، حتى لو استفاد منها شخص آخر.',
    },
    { kind: 'heading', level: 2, text: 'السلامة على الرصيف' },
    {
      kind: 'paragraph',
      text: 'لا يمشي أحد تحت حِمل معلّق. تُلبس الخوذة والحذاء الواقي والسترة الصفراء بين الخطوط البيضاء، وعلى الزوّار ذلك أيضاً؛ ويُعيرها الحارس عند البوابة مقابل توقيع.',
    },
    {
      kind: 'list',
      items: [
        'إذا اندلع حريق فاضغط أقرب زرّ أحمر واخرج عن طريق السلالم.',
        'اذهب إلى نقطة التجمّع C خلف مستودع الجمارك، وأجب عندما يُقرأ اسمك.',
        'لا ترجع إلا بعد أن تأذن فرقة الإطفاء بذلك.',
      ],
    },
    {
      kind: 'paragraph',
      text: 'يُدوَّن كل حادث في يومه مهما كان صغيراً. وقد وقع منها في عام 2023 واحد وأربعون حادثاً، أي أقلّ بنسبة 38% من عام 2021، ولم يكن أيٌّ منها قاتلاً.',
      footnote: 'أرقام لجنة السلامة، جلسة 9 يناير 2024.',
    },
  ],
}

export const OFFICE_TEXTS: readonly OfficeText[] = [arabic, english]
