import { useSyncExternalStore } from 'react'

/** Returns a hook that says whether the window matches a query, and updates when that changes. */
function fits(query: string): () => boolean {
  const list = matchMedia(query)
  const watch = (watcher: () => void) => {
    list.addEventListener('change', watcher)
    return () => list.removeEventListener('change', watcher)
  }
  return () => useSyncExternalStore(watch, () => list.matches)
}

/** Whether there is room beside the page (Tailwind's `lg`). Content that a phone does not show takes no time there. */
export const useIsWide = fits('(min-width: 64rem)')
/** Whether there is no room for a table with many columns (below Tailwind's `md`). */
export const useIsNarrow = fits('(width < 48rem)')
