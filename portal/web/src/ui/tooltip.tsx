import { Tooltip as Radix } from 'radix-ui'
import type { ReactNode } from 'react'

/** Shows a short text at its child, on hover and focus. The child needs a name of its own. */
export function Tooltip({ label, children }: { readonly label: ReactNode; readonly children: ReactNode }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-w-72 animate-appear rounded-md bg-ink px-2 py-1 text-xs text-canvas shadow-raised"
        >
          {label}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

export const TooltipProvider = Radix.Provider
