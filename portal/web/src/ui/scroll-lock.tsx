import { type ElementType, Fragment, type ReactNode, useLayoutEffect } from 'react'

interface RemoveScrollProps {
  readonly as?: ElementType
  readonly allowPinchZoom?: boolean
  readonly shards?: unknown
  readonly children?: ReactNode
}

let locks = 0

/**
 * Replaces the package `react-remove-scroll` of Radix, which locks scrolling with a style element that the
 * Content-Security-Policy refuses. This component sets a class of styles.css.
 */
export function RemoveScroll({ as: As = Fragment, allowPinchZoom: _, shards: __, ...rest }: RemoveScrollProps) {
  useLayoutEffect(() => {
    const root = document.documentElement
    if (locks++ === 0) {
      // The padding keeps the page from jumping when its scroll bar disappears.
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
