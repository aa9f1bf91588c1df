import type { Language } from '../../subgraphs/common/languages.ts'

/** The reason why there is no portal to show. */
export type Lack = 'building' | 'failed' | 'no-tools'

/** Seconds after which a waiting page reloads. */
export const RELOAD_S = 2

const TEXTS: Readonly<Record<Language, Readonly<Record<Lack, readonly [title: string, text: string]>>>> = {
  en: {
    building: [
      'The portal is being built',
      'This takes some seconds, once after each update. The page loads itself again. The APIs work already.',
    ],
    failed: ['The portal could not be built', 'The log of the service says why. Fix it, and restart the service. The APIs work.'],
    'no-tools': [
      'The portal is not built',
      'The tools to build it are not installed here. Run "npm ci" and "npm run portal:build" in the folder of the service, and start the service again. The APIs work.',
    ],
  },
  ar: {
    building: ['يجري بناء البوابة', 'يستغرق ذلك بضع ثوانٍ بعد كل تحديث. ستُعاد هذه الصفحة تلقائيًا. واجهات البرمجة تعمل الآن.'],
    failed: ['تعذّر بناء البوابة', 'يذكر سجلّ الخدمة السبب. أصلِحه ثم أعد تشغيل الخدمة. واجهات البرمجة تعمل.'],
    'no-tools': [
      'البوابة غير مبنية',
      'أدوات البناء غير مثبتة هنا. نفّذ "npm ci" ثم "npm run portal:build" في مجلد الخدمة، وأعد تشغيلها. واجهات البرمجة تعمل.',
    ],
  },
}

/** Renders a page without scripts and styles. */
export function renderNotice(lack: Lack, language: Language): string {
  const [title, text] = TEXTS[language][lack]
  const reload = lack === 'building' ? `<meta http-equiv="refresh" content="${RELOAD_S}">` : ''
  return `<!doctype html>
<html lang="${language}" dir="${language === 'ar' ? 'rtl' : 'ltr'}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">${reload}<title>${title}</title></head>
<body><main><h1>${title}</h1><p>${text}</p></main></body></html>
`
}
