import { useSyncExternalStore } from 'react'

/** Tailwind's `lg`. */
const wide = matchMedia('(min-width: 64rem)')

function watch(watcher: () => void): () => void {
  wide.addEventListener('change', watcher)
  return () => wide.removeEventListener('change', watcher)
}

/** Whether there is room beside the page. What a phone does not show takes no time there. */
export function useIsWide(): boolean {
  return useSyncExternalStore(watch, () => wide.matches)
}
