import { useText } from '../../i18n/text.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'

/** A secret that is shown once. */
export interface Secret {
  readonly name: string
  readonly key: string
}

/** Closes by its button alone, so that nobody loses the secret by a stray key. */
export function SecretDialog({ secret, onClose }: { readonly secret: Secret | null; readonly onClose: () => void }) {
  const text = useText()
  return (
    <Dialog
      isOpen={secret !== null}
      onClose={onClose}
      isModal
      title={text('keys.secret.title')}
      description={text('keys.secret.help')}
      actions={
        <Button variant="primary" onClick={onClose}>
          {text('keys.secret.done')}
        </Button>
      }
    >
      {secret && (
        <>
          <p className="mb-2 text-sm">
            <UserText>{secret.name}</UserText>
          </p>
          <div className="flex items-center gap-2 rounded-lg border bg-sunken p-3">
            <code dir="ltr" className="min-w-0 grow font-mono text-sm break-all">
              {secret.key}
            </code>
            <CopyButton value={secret.key} label={text('keys.secret.copy')} />
          </div>
        </>
      )}
    </Dialog>
  )
}
