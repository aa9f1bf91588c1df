import type { Plugin } from 'vite'

/** The page is not painted before its first script has run, which sets the theme. Vite drops the attribute. */
export function firstScript(): Plugin {
  return {
    name: 'first-script',
    transformIndexHtml: { order: 'post', handler: (html) => html.replace('<script type="module"', '$& blocking="render"') },
  }
}
