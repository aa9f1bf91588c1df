import { X } from 'lucide-react'
import { Dialog as Radix, AlertDialog as RadixAlert } from 'radix-ui'
import { type ReactNode, useState } from 'react'
import { useText } from '../i18n/text.tsx'
import { Button, IconButton } from './button.tsx'
import { classes } from './classes.ts'

const OVERLAY = 'fixed inset-0 z-40 animate-appear bg-scrim'
const PANEL = classes(
  'fixed inset-x-4 top-[8dvh] z-50 mx-auto max-h-[84dvh] animate-rise overflow-y-auto overscroll-contain',
  'rounded-2xl border bg-raised p-5 shadow-raised sm:p-6',
)

interface DialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: ReactNode
  readonly description?: ReactNode
  readonly size?: 'small' | 'medium' | 'large'
  /** The dialog closes only by its own buttons. */
  readonly isModal?: boolean
  readonly children: ReactNode
  /** The buttons, the main one last. */
  readonly actions?: ReactNode
}

const WIDTHS = { small: 'max-w-md', medium: 'max-w-xl', large: 'max-w-4xl' } as const

function Head({ title, description }: Pick<DialogProps, 'title' | 'description'>) {
  return (
    <header className="mb-4 pe-9">
      <Radix.Title className="text-lg font-semibold wrap-anywhere">{title}</Radix.Title>
      <Radix.Description className={description ? 'mt-1 text-sm text-muted' : 'sr-only'}>{description}</Radix.Description>
    </header>
  )
}

/** The last element, so that the first field has the focus when a dialog opens. */
function CloseButton({ onClose }: Pick<DialogProps, 'onClose'>) {
  const text = useText()
  return <IconButton label={text('common.close')} icon={X} size="small" onClick={onClose} className="absolute end-3.5 top-4 sm:top-5" />
}

export function Dialog({ isOpen, onClose, title, description, size = 'medium', isModal, children, actions }: DialogProps) {
  const stay = isModal ? (event: Event) => event.preventDefault() : undefined
  return (
    <Radix.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={OVERLAY} />
        <Radix.Content className={classes(PANEL, WIDTHS[size])} onEscapeKeyDown={stay} onInteractOutside={stay}>
          <Head title={title} description={description} />
          {children}
          {actions && <footer className="mt-6 flex flex-wrap justify-end gap-2">{actions}</footer>}
          {!isModal && <CloseButton onClose={onClose} />}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

/** Focuses the panel, not a button: a sheet is read first. */
function focusPanel(event: Event): void {
  event.preventDefault()
  ;(event.currentTarget as HTMLElement).focus()
}

/** A panel at the end of the line; full width on a phone. */
export function Sheet({
  isOpen,
  onClose,
  title,
  description,
  size = 'medium',
  children,
  actions,
  side = 'end',
}: DialogProps & { readonly side?: 'start' | 'end' }) {
  return (
    <Radix.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={OVERLAY} />
        <Radix.Content
          onOpenAutoFocus={focusPanel}
          className={classes(
            'fixed inset-y-0 z-50 flex w-full outline-none animate-appear flex-col overflow-y-auto overscroll-contain bg-raised p-5 shadow-raised sm:p-6',
            side === 'end' ? 'end-0 sm:border-s' : 'start-0 max-w-72 border-e',
            side === 'end' && { small: 'sm:max-w-md', medium: 'sm:max-w-xl', large: 'sm:max-w-3xl' }[size],
          )}
        >
          <Head title={title} description={description} />
          <div className="grow">{children}</div>
          {actions && <footer className="mt-6 flex flex-wrap justify-end gap-2">{actions}</footer>}
          <CloseButton onClose={onClose} />
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

interface ConfirmDialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: ReactNode
  /** What will happen, and whether it can be undone. */
  readonly description: ReactNode
  /** The label of the button: "Delete 3 documents", never "OK". */
  readonly action: string
  readonly isDangerous?: boolean
  /** The dialog waits for the result, and stays open if it is false. */
  readonly onConfirm: () => Promise<boolean | undefined> | boolean | undefined
  readonly children?: ReactNode
}

export function ConfirmDialog({ isOpen, onClose, title, description, action, isDangerous, onConfirm, children }: ConfirmDialogProps) {
  const text = useText()
  const [isBusy, setBusy] = useState(false)
  const confirm = async () => {
    setBusy(true)
    try {
      if ((await onConfirm()) !== false) onClose()
    } finally {
      setBusy(false)
    }
  }
  return (
    <RadixAlert.Root open={isOpen} onOpenChange={(open) => !open && !isBusy && onClose()}>
      <RadixAlert.Portal>
        <RadixAlert.Overlay className={OVERLAY} />
        <RadixAlert.Content className={classes(PANEL, WIDTHS.small)}>
          <RadixAlert.Title className="text-lg font-semibold wrap-anywhere">{title}</RadixAlert.Title>
          <RadixAlert.Description className="mt-2 text-sm text-muted">{description}</RadixAlert.Description>
          {children && <div className="mt-4">{children}</div>}
          <footer className="mt-6 flex flex-wrap justify-end gap-2">
            <RadixAlert.Cancel asChild>
              <Button disabled={isBusy}>{text('common.cancel')}</Button>
            </RadixAlert.Cancel>
            <Button variant={isDangerous ? 'danger' : 'primary'} isBusy={isBusy} onClick={confirm}>
              {action}
            </Button>
          </footer>
        </RadixAlert.Content>
      </RadixAlert.Portal>
    </RadixAlert.Root>
  )
}
