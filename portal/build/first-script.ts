import type { Plugin } from 'vite'

/** Makes the first script block painting, because it sets the theme. Vite drops the attribute that does this. */
export function firstScript(): Plugin {
  return {
    name: 'first-script',
    transformIndexHtml: { order: 'post', handler: (html) => html.replace('<script type="module"', '$& blocking="render"') },
  }
}
