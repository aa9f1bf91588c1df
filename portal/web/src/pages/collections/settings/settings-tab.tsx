import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useText } from '../../../i18n/text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Card } from '../../../ui/surface.tsx'
import { EditForm } from '../common/collection-form.tsx'
import type { CollectionFacts } from '../common/collections.ts'
import { DeleteCollection } from '../common/delete-collection.tsx'
import { Reembed } from './reembed.tsx'

interface SettingsTabProps {
  readonly collection: CollectionFacts
  readonly onChanged: () => void
}

/** The settings of a collection that can be changed. */
export function SettingsTab({ collection, onChanged }: SettingsTabProps) {
  const text = useText()
  const navigate = useNavigate()
  const [isDeleting, setDeleting] = useState(false)
  return (
    <div className="flex max-w-3xl flex-col gap-6">
      <Card>
        <EditForm collection={collection} />
      </Card>
      <Reembed collection={collection} onEnded={onChanged} />
      <Card>
        <div className="flex flex-wrap items-center justify-between gap-4">
          <div className="min-w-0 grow basis-60">
            <h2 className="text-base">{text('settings.delete')}</h2>
            <p className="mt-1 text-sm text-muted">{text('collections.deleteHelp')}</p>
          </div>
          <Button variant="danger" onClick={() => setDeleting(true)}>
            {text('collections.deleteAction')}
          </Button>
        </div>
      </Card>
      <DeleteCollection
        collection={isDeleting ? collection : null}
        onClose={() => setDeleting(false)}
        onDeleted={() => void navigate({ to: '/collections', replace: true })}
      />
    </div>
  )
}
