import { CircleCheck, CircleX, X } from 'lucide-react'
import { Toast as Radix } from 'radix-ui'
import { useText } from '../i18n/text.tsx'
import { IconButton } from './button.tsx'
import { closeToast, useToasts } from './toast.tsx'

const SHOWN_MS = 6_000

export function ToastList() {
  const text = useText()
  const toasts = useToasts()
  return (
    <Radix.Provider duration={SHOWN_MS} label={text('common.notification')}>
      {toasts.map(({ id, title, tone }) => (
        <Radix.Root
          key={id}
          onOpenChange={(open) => !open && closeToast(id)}
          className="flex animate-rise items-center gap-3 rounded-xl border bg-raised py-2 ps-4 pe-2 shadow-raised"
        >
          {tone === 'success' ? (
            <CircleCheck className="size-4 shrink-0 text-success-text" aria-hidden />
          ) : (
            <CircleX className="size-4 shrink-0 text-danger-text" aria-hidden />
          )}
          <Radix.Title className="min-w-0 grow text-sm wrap-anywhere">{title}</Radix.Title>
          <Radix.Close asChild>
            <IconButton label={text('common.close')} icon={X} size="small" />
          </Radix.Close>
        </Radix.Root>
      ))}
      <Radix.Viewport
        label={text('common.notifications')}
        className="fixed inset-x-4 bottom-4 z-50 ms-auto flex max-w-sm flex-col gap-2 outline-none"
      />
    </Radix.Provider>
  )
}
