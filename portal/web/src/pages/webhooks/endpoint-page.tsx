import { getRouteApi, Link } from '@tanstack/react-router'
import { KeyRound, Pencil, Power, Send, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { type Secret, SecretDialog } from '../../parts/secret-dialog.tsx'
import { FailureNotice, NotFound, WhenReady } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Badge, Notice } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { Deliveries } from './deliveries.tsx'
import { EndpointForm } from './endpoint-form.tsx'
import { EndpointState } from './endpoint-state.tsx'
import { DELETE, ENDPOINT, type Endpoint, PING, ROTATE, UPDATE } from './webhooks.ts'

const route = getRouteApi('/webhooks/$id')

export function EndpointPage() {
  const text = useText()
  const { id } = route.useParams()
  const result = useQueryResult(ENDPOINT, { id })
  const back = <Link to="/webhooks">{text('webhooks.title')}</Link>
  if (result.state !== 'ready' || !result.data.webhookEndpoint) {
    return (
      <>
        <PageHeader title={text('webhooks.endpoint')} back={back} />
        <WhenReady result={result}>{() => <NotFound />}</WhenReady>
      </>
    )
  }
  const endpoint = result.data.webhookEndpoint
  return (
    <>
      <PageHeader
        title={endpoint.url}
        heading={<Code className="font-sans">{endpoint.url}</Code>}
        lead={endpoint.description && <UserText>{endpoint.description}</UserText>}
        back={back}
        actions={<Actions endpoint={endpoint} />}
      />
      <div className="mb-8 flex flex-col gap-4">
        {endpoint.disabledReason && <Notice tone="danger">{text(`webhooks.disabled.${endpoint.disabledReason}`)}</Notice>}
        <Facts endpoint={endpoint} />
      </div>
      <Deliveries endpointId={id} />
    </>
  )
}

function Facts({ endpoint }: { readonly endpoint: Endpoint }) {
  const text = useText()
  const { id, eventTypes, disabledAt, failingSince, previousSecretUntil, createdAt } = endpoint
  return (
    <FactList
      facts={[
        [text('webhooks.state'), <EndpointState key="state" endpoint={endpoint} />],
        [text('webhooks.id'), <Code key="id">{id}</Code>],
        [
          text('webhooks.events'),
          <span key="events" className="flex flex-wrap gap-1">
            {eventTypes.map((type) => (
              <Badge key={type}>
                <Code className="font-sans">{type}</Code>
              </Badge>
            ))}
          </span>,
        ],
        [text('webhooks.offSince'), disabledAt && <DateTime key="off" at={disabledAt} />],
        [text('webhooks.failingSince'), failingSince && <DateTime key="failing" at={failingSince} />],
        [text('webhooks.oldSecretUntil'), previousSecretUntil && <DateTime key="old" at={previousSecretUntil} />],
        [text('webhooks.created'), <DateTime key="created" at={createdAt} />],
      ]}
    />
  )
}

type Step = 'edit' | 'rotate' | 'delete'

function Actions({ endpoint }: { readonly endpoint: Endpoint }) {
  const text = useText()
  const navigate = route.useNavigate()
  const [step, setStep] = useState<Step | null>(null)
  const [secret, setSecret] = useState<Secret | null>(null)
  const update = useAction(UPDATE)
  const rotate = useAction(ROTATE)
  const remove = useAction(DELETE)
  const ping = useAction(PING)
  const { id, url, description, eventTypes, isActive } = endpoint
  const close = () => setStep(null)
  const sendPing = async () => {
    const sent = await ping.run({ id })
    toast(text(sent ? 'webhooks.pinged' : 'webhooks.pingFailed'), sent ? 'success' : 'danger')
  }
  const toggle = async () => {
    const changed = await update.run({ input: { id, isActive: !isActive } })
    toast(text(changed ? (isActive ? 'webhooks.switchedOff' : 'webhooks.switchedOn') : 'webhooks.notSaved'), changed ? 'success' : 'danger')
  }
  return (
    <>
      <Button icon={Send} isBusy={ping.isRunning} onClick={sendPing}>
        {text('webhooks.ping')}
      </Button>
      <Button icon={Power} isBusy={update.isRunning} onClick={toggle}>
        {text(isActive ? 'webhooks.switchOff' : 'webhooks.switchOn')}
      </Button>
      <Button icon={KeyRound} onClick={() => setStep('rotate')}>
        {text('webhooks.rotate')}
      </Button>
      <Button icon={Pencil} onClick={() => setStep('edit')}>
        {text('common.edit')}
      </Button>
      <Button icon={Trash2} onClick={() => setStep('delete')}>
        {text('common.delete')}
      </Button>
      <EndpointForm
        isOpen={step === 'edit'}
        onClose={() => {
          update.reset()
          close()
        }}
        title={text('webhooks.edit')}
        action={text('common.save')}
        start={{ url, description: description ?? '', eventTypes }}
        isBusy={update.isRunning}
        failure={update.failure}
        onSubmit={async (input) => {
          if (!(await update.run({ input: { id, ...input } }))) return
          toast(text('webhooks.saved'))
          close()
        }}
      />
      <ConfirmDialog
        isOpen={step === 'rotate'}
        onClose={close}
        title={text('webhooks.rotateTitle')}
        description={text('webhooks.rotateHelp')}
        action={text('webhooks.rotate')}
        onConfirm={async () => {
          const rotated = (await rotate.run({ id }))?.rotateWebhookSecret
          if (!rotated) return false
          setSecret({ name: url, secret: rotated.secret })
          return true
        }}
      >
        <FailureNotice failure={rotate.failure} />
      </ConfirmDialog>
      <ConfirmDialog
        isOpen={step === 'delete'}
        onClose={close}
        title={text('webhooks.deleteTitle')}
        description={text('webhooks.deleteHelp')}
        action={text('common.delete')}
        isDangerous
        onConfirm={async () => {
          if (!(await remove.run({ id }))) return false
          toast(text('webhooks.deleted'))
          void navigate({ to: '/webhooks' })
          return true
        }}
      >
        <FailureNotice failure={remove.failure} />
      </ConfirmDialog>
      <SecretDialog shown={secret} title={text('webhooks.secretTitle')} onClose={() => setSecret(null)} />
    </>
  )
}
