import { RotateCw, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useAction, useAnswer } from '../../../data/answer.ts'
import { useText } from '../../../i18n/text.tsx'
import { useFieldFailures } from '../../../parts/field-failure.tsx'
import { Answered, FailureNotice, Loading } from '../../../parts/states.tsx'
import { RelativeTime } from '../../../parts/time.tsx'
import { Code, UserText } from '../../../parts/user-text.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Select } from '../../../ui/input.tsx'
import { toast } from '../../../ui/toast.tsx'
import { ATTACH_ADDRESS, COLLECTION_SOURCES, DELETE_SOURCE, REFRESH_SOURCE } from './documents.ts'

const DAY = 86_400
const REFRESH = { never: null, daily: DAY, weekly: 7 * DAY, monthly: 30 * DAY } as const
type Refresh = keyof typeof REFRESH
const REFRESH_NAMES = Object.keys(REFRESH) as readonly Refresh[]
const MAX_SHOWN = 50

interface WebAddressesProps {
  readonly collectionId: string
  readonly mayWrite: boolean
  readonly isOpen: boolean
  readonly onClose: () => void
}

/** The web addresses of a collection: adds one, and shows those that it has. */
export function WebAddresses({ collectionId, mayWrite, isOpen, onClose }: WebAddressesProps) {
  const text = useText()
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title={text('documents.web')} description={text('documents.webHelp')}>
      {mayWrite && <AddAddress collectionId={collectionId} />}
      <Addresses collectionId={collectionId} mayWrite={mayWrite} />
    </Dialog>
  )
}

function AddAddress({ collectionId }: { readonly collectionId: string }) {
  const text = useText()
  const [url, setUrl] = useState('')
  const [refresh, setRefresh] = useState<Refresh>('never')
  const { run, isRunning, failure } = useAction(ATTACH_ADDRESS)
  const failures = useFieldFailures(failure, ['url'])
  const [isTried, setTried] = useState(false)
  const isAddress = /^https?:\/\/\S+$/i.test(url.trim())
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isAddress) return
    const done = await run({ input: { collectionId, url: url.trim(), refreshSeconds: REFRESH[refresh] } })
    if (!done) return
    setUrl('')
    setTried(false)
    toast(text('documents.webAdded'))
  }
  return (
    <form noValidate onSubmit={submit} className="mb-5 flex flex-col gap-4 border-b pb-5">
      <Field
        label={text('documents.webUrl')}
        isRequired
        error={failures.of('url') ?? (isTried && !isAddress ? text('documents.webUrlWrong') : undefined)}
      >
        {(control) => (
          <Input
            {...control}
            type="url"
            dir="ltr"
            placeholder="https://"
            maxLength={2048}
            value={url}
            onChange={({ target }) => setUrl(target.value)}
          />
        )}
      </Field>
      <Field label={text('documents.webRefresh')}>
        {(control) => (
          <Select
            {...control}
            value={refresh}
            onChange={setRefresh}
            options={REFRESH_NAMES.map((value) => ({ value, label: text(`documents.webRefresh.${value}`) }))}
          />
        )}
      </Field>
      <FailureNotice failure={failures.rest} />
      <Button type="submit" variant="primary" isBusy={isRunning} className="self-end">
        {text('documents.webFetch')}
      </Button>
    </form>
  )
}

function Addresses({ collectionId, mayWrite }: Pick<WebAddressesProps, 'collectionId' | 'mayWrite'>) {
  const text = useText()
  const answer = useAnswer(
    COLLECTION_SOURCES,
    { id: collectionId, first: MAX_SHOWN, after: null },
    { types: ['WebSource', 'Document', 'DeletePayload'] },
  )
  const refreshing = useAction(REFRESH_SOURCE)
  const deleting = useAction(DELETE_SOURCE)
  return (
    <Answered answer={answer} loading={<Loading lines={2} />}>
      {({ collection }) => {
        const sources = collection?.sources.edges.map(({ node }) => node) ?? []
        if (sources.length === 0) return <p className="text-sm text-muted">{text('documents.webNone')}</p>
        return (
          <>
            <FailureNotice failure={refreshing.failure ?? deleting.failure} />
            <ul aria-label={text('documents.web')} className="divide-y">
              {sources.map(({ id, url, checkedAt, error }) => (
                <li key={id} className="flex items-center gap-2 py-2 text-sm">
                  <div className="min-w-0 grow">
                    <Code className="font-sans">{url}</Code>
                    <p className="text-xs text-muted">
                      {checkedAt ? (
                        <>
                          {text('documents.webChecked')} <RelativeTime at={checkedAt} />
                        </>
                      ) : (
                        text('documents.webWaiting')
                      )}
                    </p>
                    {error && (
                      <p className="text-danger-text">
                        <UserText isWhole>{error}</UserText>
                      </p>
                    )}
                  </div>
                  {mayWrite && (
                    <>
                      <IconButton
                        label={text('documents.webAgain', { url: url.slice(0, 120) })}
                        icon={RotateCw}
                        size="small"
                        disabled={refreshing.isRunning}
                        onClick={() => void refreshing.run({ id })}
                      />
                      <IconButton
                        label={text('documents.webForget', { url: url.slice(0, 120) })}
                        icon={Trash2}
                        size="small"
                        disabled={deleting.isRunning}
                        onClick={() => void deleting.run({ id })}
                      />
                    </>
                  )}
                </li>
              ))}
            </ul>
          </>
        )
      }}
    </Answered>
  )
}
