import { ImagePlus, SendHorizontal, Square, X } from 'lucide-react'
import { type ChangeEvent, type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { Failure } from '../../../data/failure.ts'
import { useEvents } from '../../../data/query-result.ts'
import { type MessageId, Text, useFormats, useText } from '../../../i18n/text.tsx'
import { toDataUrl } from '../../../parts/read-file.ts'
import { FailureNotice } from '../../../parts/states.tsx'
import { Code, UserText } from '../../../parts/user-text.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { classes } from '../../../ui/classes.ts'
import { Field } from '../../../ui/field.tsx'
import { Textarea } from '../../../ui/input.tsx'
import { Notice } from '../../../ui/surface.tsx'
import { NO_REPLY, type Reply, requestOf, type Turn, withEvent } from './conversation.ts'
import { CHAT } from './operations.ts'
import { Spent } from './spent.tsx'

const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']
const MAX_IMAGE_BYTES = 4 * 1024 * 1024
/** What the page's own sentence does not tell apart. */
const CUT: Readonly<Record<string, MessageId>> = { LENGTH: 'models.try.cutLength', CONTENT_FILTER: 'models.try.cutFilter' }

interface Call {
  readonly id: number
  readonly request: unknown
}

/** A conversation with one model. The service keeps none of it. */
export function ChatTrial({ modelId, acceptsImages }: { readonly modelId: string; readonly acceptsImages: boolean }) {
  const text = useText()
  const [instructions, setInstructions] = useState('')
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const [typed, setTyped] = useState('')
  const [image, setImage] = useState<string | null>(null)
  const [call, setCall] = useState<Call | null>(null)
  const [reply, setReply] = useState<Reply>(NO_REPLY)
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isStopped, setStopped] = useState(false)
  const isBusy = call !== null && reply.cost === null && failure === null && !isStopped

  const send = () => {
    const said = typed.trim()
    if (said === '' || isBusy) return
    const earlier = reply.text ? [...turns, { role: 'assistant', text: reply.text } as const] : turns
    const next = [...earlier, { role: 'user', text: said, ...(image && { image }) } as const]
    setTurns(next)
    setReply(NO_REPLY)
    setFailure(null)
    setStopped(false)
    setCall({ id: (call?.id ?? 0) + 1, request: requestOf(modelId, instructions, next) })
    setTyped('')
    setImage(null)
  }
  /** Asks the same again. */
  const repeat = () => {
    setReply(NO_REPLY)
    setFailure(null)
    setCall((now) => now && { ...now, id: now.id + 1 })
  }
  const restart = () => {
    setTurns([])
    setReply(NO_REPLY)
    setFailure(null)
    setCall(null)
    setStopped(false)
  }
  return (
    <div className="flex max-w-3xl flex-col gap-5">
      {isBusy && <Listener key={call.id} request={call.request} onReply={setReply} onFailure={setFailure} />}
      <Field label={text('models.try.instructions')} help={text('models.try.instructionsHelp')}>
        {(control) => <Textarea {...control} rows={2} value={instructions} onChange={({ target }) => setInstructions(target.value)} />}
      </Field>
      {turns.length > 0 && (
        <section aria-label={text('models.try.conversation')} className="flex flex-col gap-3">
          {turns.map((turn, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: turns are only added at the end.
            <Bubble key={index} turn={turn} />
          ))}
          <div aria-live="polite" aria-busy={isBusy} className="flex flex-col gap-2">
            {(reply.text || isBusy) && <Bubble turn={{ role: 'assistant', text: reply.text || text('models.try.waiting') }} />}
            <FailureNotice failure={failure} retry={repeat} />
            {isStopped && <p className="text-sm text-muted">{text('models.try.stopped')}</p>}
            {reply.finishReason && CUT[reply.finishReason] && <Notice tone="warning">{text(CUT[reply.finishReason]!)}</Notice>}
            {reply.warnings.map((warning) => (
              <Notice key={warning} tone="warning">
                <WarningText warning={warning} />
              </Notice>
            ))}
            {reply.cost !== null && <Spent cost={reply.cost}>{reply.usage && <Tokens usage={reply.usage} />}</Spent>}
          </div>
        </section>
      )}
      <Composer
        {...{ typed, image, acceptsImages, isBusy }}
        onType={setTyped}
        onImage={setImage}
        onSend={send}
        onStop={() => setStopped(true)}
        onRestart={turns.length > 0 && !isBusy ? restart : null}
      />
    </div>
  )
}

interface ListenerProps {
  readonly request: unknown
  readonly onReply: (next: (now: Reply) => Reply) => void
  readonly onFailure: (failure: Failure) => void
}

/**
 * Makes one call while it is there; taking it away stops the engine. It sends no idempotency key: a call with one goes on
 * to its end, and is paid for, also when the reader stops it.
 */
function Listener({ request, onReply, onFailure }: ListenerProps) {
  const failure = useEvents(CHAT, { input: { request } }, ({ chatCompletion }) => onReply((now) => withEvent(now, chatCompletion)))
  useEffect(() => {
    if (failure) onFailure(failure)
  }, [failure, onFailure])
  return null
}

function Tokens({ usage }: { readonly usage: NonNullable<Reply['usage']> }) {
  const text = useText()
  const { number } = useFormats()
  return (
    <>
      <span>{text('models.try.inputTokens', { count: usage.promptTokens, shown: number(usage.promptTokens) })}</span>
      <span>{text('models.try.outputTokens', { count: usage.completionTokens, shown: number(usage.completionTokens) })}</span>
    </>
  )
}

function Bubble({ turn }: { readonly turn: Turn }) {
  const text = useText()
  const isUser = turn.role === 'user'
  return (
    <div className={classes('max-w-[85%] rounded-xl border px-4 py-3 text-sm', isUser ? 'ms-auto bg-accent-soft' : 'me-auto bg-surface')}>
      <p className="mb-1 text-xs font-medium text-muted">{text(isUser ? 'models.try.you' : 'models.model')}</p>
      {turn.image && <img src={turn.image} alt={text('models.try.image')} className="mb-2 max-h-48 rounded-lg" />}
      <UserText isWhole>{turn.text}</UserText>
    </div>
  )
}

interface ComposerProps {
  readonly typed: string
  readonly image: string | null
  readonly acceptsImages: boolean
  readonly isBusy: boolean
  readonly onType: (typed: string) => void
  readonly onImage: (image: string | null) => void
  readonly onSend: () => void
  readonly onStop: () => void
  /** Null: there is nothing to begin anew. */
  readonly onRestart: (() => void) | null
}

function Composer({ typed, image, acceptsImages, isBusy, onType, onImage, onSend, onStop, onRestart }: ComposerProps) {
  const text = useText()
  const [refused, setRefused] = useState<File | null>(null)
  const picker = useRef<HTMLInputElement>(null)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSend()
  }
  const pick = async ({ target }: ChangeEvent<HTMLInputElement>) => {
    const file = target.files?.[0]
    target.value = ''
    if (!file) return
    const isGood = IMAGE_TYPES.includes(file.type) && file.size <= MAX_IMAGE_BYTES
    setRefused(isGood ? null : file)
    if (isGood) onImage(await toDataUrl(file))
  }
  // Enter sends, as in every chat; Shift and Enter begin a line. While a word is composed, Enter belongs to the keyboard.
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    onSend()
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <Field label={text('models.try.message')} error={refused && <Refused file={refused} />}>
        {(control) => (
          <Textarea {...control} rows={3} value={typed} onKeyDown={onKeyDown} onChange={({ target }) => onType(target.value)} />
        )}
      </Field>
      {image && (
        <div className="flex items-center gap-2">
          <img src={image} alt={text('models.try.image')} className="size-16 rounded-lg border object-cover" />
          <IconButton label={text('models.try.removeImage')} icon={X} size="small" onClick={() => onImage(null)} />
        </div>
      )}
      <div className="flex flex-wrap gap-2">
        {isBusy ? (
          <Button icon={Square} onClick={onStop}>
            {text('models.try.stop')}
          </Button>
        ) : (
          <Button variant="primary" type="submit" disabled={typed.trim() === ''}>
            <SendHorizontal className="size-4 rtl:-scale-x-100" aria-hidden />
            {text('models.try.send')}
          </Button>
        )}
        {acceptsImages && (
          <>
            <input
              ref={picker}
              type="file"
              accept={IMAGE_TYPES.join()}
              onChange={pick}
              className="hidden"
              aria-label={text('models.try.addImage')}
            />
            <Button icon={ImagePlus} onClick={() => picker.current?.click()}>
              {text('models.try.addImage')}
            </Button>
          </>
        )}
        {onRestart && (
          <Button variant="ghost" onClick={onRestart}>
            {text('models.try.begin')}
          </Button>
        )}
      </div>
    </form>
  )
}

/** Why a file is not sent as a picture. */
function Refused({ file }: { readonly file: File }) {
  const { bytesApart } = useFormats()
  const [size, limit] = bytesApart(file.size, MAX_IMAGE_BYTES)
  const name = <UserText isWhole>{file.name}</UserText>
  return IMAGE_TYPES.includes(file.type) ? (
    <Text id="models.try.imageTooLarge" values={{ name, size, limit }} />
  ) : (
    <Text id="models.try.imageType" values={{ name }} />
  )
}

/** What the service did not honor, such as `seed_not_honored`, or `answered_by:<model>`. */
function WarningText({ warning }: { readonly warning: string }) {
  const model = /^answered_by:(.*)$/s.exec(warning)?.[1]
  if (model !== undefined) return <Text id="models.try.answeredBy" values={{ model: <Code key="model">{decodeURI(model)}</Code> }} />
  const setting = /^(.*)_not_honored$/s.exec(warning)?.[1] ?? warning
  return <Text id="models.try.notHonored" values={{ setting: <Code key="setting">{setting}</Code> }} />
}
