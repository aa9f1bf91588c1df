import { FileAudio } from 'lucide-react'
import { type FormEvent, useRef, useState } from 'react'
import { useAction } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { CopyButton } from '../../../parts/copy-button.tsx'
import { toBase64 } from '../../../parts/read-file.ts'
import { FailureNotice } from '../../../parts/states.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input } from '../../../ui/input.tsx'
import { Card } from '../../../ui/surface.tsx'
import { TRANSCRIBE } from './operations.ts'
import { Spent } from './spent.tsx'

const MAX_BYTES = 25 * 1024 * 1024

interface Result {
  readonly text: string
  readonly seconds: number | null
  readonly cost: string | null
}

/** The text of a recording. */
export function TranscriptionTrial({ modelId }: { readonly modelId: string }) {
  const text = useText()
  const { number, bytes } = useFormats()
  const picker = useRef<HTMLInputElement>(null)
  const [file, setFile] = useState<File | null>(null)
  const [language, setLanguage] = useState('')
  const [result, setResult] = useState<Result | null>(null)
  const transcribe = useAction(TRANSCRIBE)
  const isLarge = file !== null && file.size > MAX_BYTES
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (!file || isLarge) return
    setResult(null)
    const input = {
      model: modelId,
      contentBase64: await toBase64(file),
      language: language.trim().toLowerCase() || null,
      idempotencyKey: crypto.randomUUID(),
    }
    const transcription = (await transcribe.run({ input }))?.createTranscription
    if (transcription) setResult({ text: transcription.text, seconds: transcription.audioSeconds ?? null, cost: transcription.cost })
  }
  return (
    <form onSubmit={submit} className="flex max-w-3xl flex-col gap-4">
      <Field
        label={text('models.try.recording')}
        help={text('models.try.recordingHelp', { size: bytes(MAX_BYTES) })}
        error={isLarge && text('error.payload_too_large')}
      >
        {(control) => (
          <div className="flex items-center gap-3 text-sm">
            <input
              {...control}
              ref={picker}
              type="file"
              accept=".flac,.mp3,.mp4,.m4a,.ogg,.wav,.webm,audio/*"
              className="peer sr-only"
              onChange={({ target }) => setFile(target.files?.[0] ?? null)}
            />
            {/* The browser writes on its own button in its own language. */}
            <Button
              icon={FileAudio}
              tabIndex={-1}
              aria-hidden
              className="peer-focus-visible:outline-2 peer-focus-visible:outline-offset-2"
              onClick={() => picker.current?.click()}
            >
              {text('models.try.chooseRecording')}
            </Button>
            {file && <UserText>{file.name}</UserText>}
          </div>
        )}
      </Field>
      <Field label={text('models.try.language')} help={text('models.try.languageHelp')} className="max-w-60">
        {(control) => <Input {...control} dir="ltr" maxLength={8} value={language} onChange={({ target }) => setLanguage(target.value)} />}
      </Field>
      <div>
        <Button variant="primary" type="submit" isBusy={transcribe.isRunning} disabled={!file || isLarge}>
          {text('models.try.transcribe')}
        </Button>
      </div>
      <FailureNotice failure={transcribe.failure} />
      <div role="status">
        {result && (
          <Card className="flex flex-col gap-3">
            <div className="flex items-start gap-3 text-sm">
              <p className="min-w-0 grow">{result.text ? <UserText isWhole>{result.text}</UserText> : text('models.try.silence')}</p>
              {result.text && <CopyButton value={result.text} />}
            </div>
            <Spent cost={result.cost}>
              {result.seconds !== null && (
                <span>
                  {text('models.try.seconds', { count: result.seconds, shown: number(result.seconds, { maximumFractionDigits: 1 }) })}
                </span>
              )}
            </Spent>
          </Card>
        )}
      </div>
    </form>
  )
}
