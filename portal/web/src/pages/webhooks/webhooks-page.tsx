import { Link } from '@tanstack/react-router'
import { Plus, Webhook } from 'lucide-react'
import { useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { type Secret, SecretDialog } from '../../parts/secret-dialog.tsx'
import { EmptyState } from '../../parts/states.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { EndpointForm } from './endpoint-form.tsx'
import { EndpointState } from './endpoint-state.tsx'
import { CREATE, ENDPOINTS, type EndpointRow } from './webhooks.ts'

const NEW_ENDPOINT = { url: '', description: '', eventTypes: ['document.updated'] }

export function WebhooksPage() {
  const text = useText()
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<Secret | null>(null)
  const create = useAction(CREATE)
  const columns = useColumns()
  const paging = usePaging()
  const result = useQueryResult(ENDPOINTS, paging.variables, { types: ['WebhookEndpoint'] })
  const button = (
    <Button variant="primary" icon={Plus} onClick={() => setCreating(true)}>
      {text('webhooks.create')}
    </Button>
  )
  return (
    <>
      <PageHeader title={text('webhooks.title')} lead={text('webhooks.lead')} actions={button} />
      <DataTable
        label={text('webhooks.title')}
        result={result}
        page={({ webhookEndpoints }) => webhookEndpoints ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={Webhook} title={text('webhooks.none')}>
            {text('webhooks.noneHelp')}
          </EmptyState>
        }
      />
      <EndpointForm
        isOpen={isCreating}
        onClose={() => {
          create.reset()
          setCreating(false)
        }}
        title={text('webhooks.create')}
        action={text('webhooks.create')}
        start={NEW_ENDPOINT}
        isBusy={create.isRunning}
        failure={create.failure}
        onSubmit={async (input) => {
          const created = (await create.run({ input }))?.createWebhookEndpoint
          if (!created) return
          setCreating(false)
          setSecret({ name: created.webhookEndpoint.url, secret: created.secret })
        }}
      />
      <SecretDialog shown={secret} title={text('webhooks.secretTitle')} onClose={() => setSecret(null)} />
    </>
  )
}

function useColumns(): readonly Column<EndpointRow>[] {
  const text = useText()
  return [
    {
      id: 'url',
      header: text('webhooks.url'),
      cell: ({ id, url, description }) => (
        <>
          <Link to="/webhooks/$id" params={{ id }} className="font-medium underline-offset-4 hover:underline">
            <Code className="max-w-48 font-sans sm:max-w-96">{url}</Code>
          </Link>
          {description && (
            <div className="text-xs text-muted">
              <UserText className="max-w-48 sm:max-w-96">{description}</UserText>
            </div>
          )}
        </>
      ),
    },
    { id: 'state', header: text('webhooks.state'), cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
    {
      id: 'events',
      header: text('webhooks.events'),
      cell: ({ eventTypes }) => <Digits value={eventTypes.length} />,
      isNumber: true,
      shown: 'wide',
    },
  ]
}
