import { useAction } from '../../../data/query-result.ts'
import { Text, useText } from '../../../i18n/text.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { ConfirmDialog } from '../../../ui/dialog.tsx'
import { Notice } from '../../../ui/surface.tsx'
import { toast } from '../../../ui/toast.tsx'
import { DELETE_COLLECTION } from './collections.ts'

/** The names of agents in the message of `IN_USE`, in quotes as it has them; the message, if there are none. */
function agentsIn(message: string): string {
  return /".*"/s.exec(message)?.[0] ?? message
}

const MAX_TITLE = 80

interface DeleteCollectionProps {
  /** Null: none is to be deleted. */
  readonly collection: { readonly id: string; readonly name: string } | null
  readonly onClose: () => void
  readonly onDeleted?: () => void
}

/** Asks before it deletes, and once more if agents search the collection: it names them. */
export function DeleteCollection({ collection, onClose, onDeleted }: DeleteCollectionProps) {
  const text = useText()
  const { run, failure, reset } = useAction(DELETE_COLLECTION)
  const isUsed = failure?.code === 'in_use'
  const close = () => {
    reset()
    onClose()
  }
  return (
    <ConfirmDialog
      isOpen={collection !== null}
      onClose={close}
      isDangerous
      title={
        <Text
          id="collections.deleteTitle"
          values={{
            name: (
              <UserText key="name" isWhole>
                {collection?.name.slice(0, MAX_TITLE) ?? ''}
              </UserText>
            ),
          }}
        />
      }
      description={text('collections.deleteHelp')}
      action={text(isUsed ? 'collections.deleteUsed' : 'collections.deleteAction')}
      onConfirm={async () => {
        if (!collection) return true
        const done = await run({ id: collection.id, detach: isUsed })
        if (!done) return false
        toast(text('collections.deleted'))
        onDeleted?.()
        return true
      }}
    >
      {failure?.code === 'in_use' ? (
        <Notice tone="warning">
          <p>{text('collections.used')}</p>
          <p className="mt-1 font-medium">
            <UserText isWhole>{agentsIn(failure.message)}</UserText>
          </p>
        </Notice>
      ) : (
        <FailureNotice failure={failure} />
      )}
    </ConfirmDialog>
  )
}
