import { type FormEvent, useState } from 'react'
import { EVENT_TYPES } from '../../../../../schema/events.ts'
import type { Failure } from '../../data/failure.ts'
import { useText } from '../../i18n/text.tsx'
import { FailureText } from '../../parts/failure-text.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { Code } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/choices.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Input } from '../../ui/input.tsx'

const MAX_DESCRIPTION = 100

interface EndpointDraft {
  readonly url: string
  readonly description: string
  readonly eventTypes: readonly string[]
}

interface EndpointFormProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: string
  readonly action: string
  readonly start: EndpointDraft
  readonly isBusy: boolean
  readonly failure: Failure | null
  readonly onSubmit: (input: { url: string; description: string | null; eventTypes: string[] }) => void
}

/** The fields of a new or an existing endpoint. */
export function EndpointForm({ isOpen, onClose, title, action, isBusy, ...form }: EndpointFormProps) {
  const text = useText()
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={title}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="endpoint-form" isBusy={isBusy}>
            {action}
          </Button>
        </>
      }
    >
      <Fields {...form} />
    </Dialog>
  )
}

function Fields({ start, failure, onSubmit }: Pick<EndpointFormProps, 'start' | 'failure' | 'onSubmit'>) {
  const text = useText()
  const [draft, setDraft] = useState(start)
  const [isTried, setTried] = useState(false)
  const { url, description, eventTypes } = draft
  const change = (next: Partial<EndpointDraft>) => setDraft((now) => ({ ...now, ...next }))
  const isUrl = URL.canParse(url.trim()) && /^https?:/.test(url.trim())
  const isShort = [...description.trim()].length <= MAX_DESCRIPTION
  // The service knows which addresses the operator allows.
  const urlError = failure?.param === 'url' ? <FailureText failure={failure} /> : isTried && !isUrl && text('webhooks.problem.url')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (isUrl && isShort && eventTypes.length > 0) {
      onSubmit({ url: url.trim(), description: description.trim() || null, eventTypes: [...eventTypes] })
    }
  }
  const toggle = (type: string) => (isOn: boolean) =>
    change({ eventTypes: isOn ? [...eventTypes, type] : eventTypes.filter((each) => each !== type) })

  return (
    <form id="endpoint-form" onSubmit={submit} noValidate className="flex flex-col gap-5">
      <FailureNotice failure={failure?.param === 'url' ? null : failure} />
      <Field label={text('webhooks.url')} help={text('webhooks.urlHelp')} error={urlError} isRequired>
        {(control) => (
          <Input
            {...control}
            type="url"
            dir="ltr"
            value={url}
            placeholder="https://"
            onChange={({ target }) => change({ url: target.value })}
          />
        )}
      </Field>
      <Field label={text('webhooks.description')} error={!isShort && text('webhooks.problem.description')}>
        {(control) => <Input {...control} value={description} onChange={({ target }) => change({ description: target.value })} />}
      </Field>
      <fieldset>
        <legend className="mb-2 text-sm font-medium">{text('webhooks.events')}</legend>
        <div className="mb-3 flex gap-2">
          <Button size="small" onClick={() => change({ eventTypes: EVENT_TYPES })}>
            {text('webhooks.allEvents')}
          </Button>
          <Button size="small" onClick={() => change({ eventTypes: [] })}>
            {text('common.none')}
          </Button>
        </div>
        <div className="grid gap-2.5 sm:grid-cols-2">
          {EVENT_TYPES.map((type) => (
            <Checkbox
              key={type}
              label={text(`webhooks.event.${type}`)}
              help={<Code>{type}</Code>}
              checked={eventTypes.includes(type)}
              onChange={toggle(type)}
            />
          ))}
        </div>
        {isTried && eventTypes.length === 0 && (
          <p role="alert" className="mt-2 text-sm text-danger-text">
            {text('webhooks.problem.events')}
          </p>
        )}
      </fieldset>
    </form>
  )
}
