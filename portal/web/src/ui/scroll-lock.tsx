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
    locks++
    document.documentElement.classList.add('is-locked')
    return () => {
      if (--locks === 0) document.documentElement.classList.remove('is-locked')
    }
  }, [])
  return <As {...rest} />
}
