import { type ElementType, Fragment, type ReactNode, useLayoutEffect } from 'react'

interface RemoveScrollProps {
  readonly as?: ElementType
  readonly allowPinchZoom?: boolean
  readonly shards?: unknown
  readonly children?: ReactNode
}

let locks = 0

/**
 * Stands for the package `react-remove-scroll` of Radix, which locks the scroll by a style element that it writes: the
 * Content-Security-Policy refuses those. This one sets a class of styles.css.
 */
export function RemoveScroll({ as: As = Fragment, allowPinchZoom: _, shards: __, ...rest }: RemoveScrollProps) {
  useLayoutEffect(() => {
    const root = document.documentElement
    if (locks++ === 0) {
      // The page does not jump when its scroll bar goes.
      root.style.setProperty('padding-inline-end', `${innerWidth - root.clientWidth}px`)
      root.classList.add('is-locked')
    }
    return () => {
      if (--locks > 0) return
      root.classList.remove('is-locked')
      root.style.removeProperty('padding-inline-end')
    }
  }, [])
  return <As {...rest} />
}
