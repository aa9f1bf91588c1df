import { useBlocker } from '@tanstack/react-router'
import { useText } from '../i18n/text.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'

/** Asks before typed text is lost: when the reader leaves for another page or tab, or closes the portal. */
export function UnsavedGuard({ isDirty }: { readonly isDirty: boolean }) {
  const text = useText()
  const tabOf = (search: unknown) => (search as { readonly tab?: string }).tab
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isDirty && (current.pathname !== next.pathname || tabOf(current.search) !== tabOf(next.search)),
    enableBeforeUnload: isDirty,
    withResolver: true,
  })
  return (
    <ConfirmDialog
      isOpen={blocker.status === 'blocked'}
      onClose={() => blocker.reset?.()}
      title={text('common.leaveTitle')}
      description={text('common.leaveHelp')}
      action={text('common.leave')}
      isDangerous
      onConfirm={() => {
        blocker.proceed?.()
        return true
      }}
    />
  )
}
