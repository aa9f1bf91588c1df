import { useText } from '../i18n/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { CopyButton } from './copy-button.tsx'
import { UserText } from './user-text.tsx'

/** A secret that is shown once. */
export interface Secret {
  /** The name of the object that the secret belongs to. */
  readonly name: string
  readonly secret: string
}

/** Closes only by its button, so that nobody loses the secret by a stray key. */
export function SecretDialog({
  shown,
  title,
  onClose,
}: {
  readonly shown: Secret | null
  readonly title: string
  readonly onClose: () => void
}) {
  const text = useText()
  return (
    <Dialog
      isOpen={shown !== null}
      onClose={onClose}
      isModal
      title={title}
      description={text('common.secretHelp')}
      actions={
        <Button variant="primary" onClick={onClose}>
          {text('common.secretStored')}
        </Button>
      }
    >
      {shown && (
        <>
          <p className="mb-2 text-sm">
            <UserText>{shown.name}</UserText>
          </p>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken p-3">
            <code dir="ltr" className="min-w-0 grow font-mono text-sm break-all">
              {shown.secret}
            </code>
            <CopyButton value={shown.secret} />
          </div>
        </>
      )}
    </Dialog>
  )
}
