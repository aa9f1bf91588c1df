import { type FormEvent, useState } from 'react'
import { useAction } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { useFieldFailures } from '../../../parts/field-failure.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { Button } from '../../../ui/button.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Select } from '../../../ui/input.tsx'
import { Card } from '../../../ui/surface.tsx'
import { toast } from '../../../ui/toast.tsx'
import { ADD_PAGE, ADD_SITE } from './web.ts'

const DAY = 86_400
export const REFRESH = { never: null, hourly: 3_600, daily: DAY, weekly: 7 * DAY, monthly: 30 * DAY } as const
type Refresh = keyof typeof REFRESH
const REFRESH_NAMES = Object.keys(REFRESH) as readonly Refresh[]
const KINDS = ['page', 'site'] as const
/** What the service adds of one site at most. */
const LIMITS = ['20', '100', '500'] as const

/** Adds one page, or the pages that a sitemap or a page of links names. */
export function AddAddress({ collectionId }: { readonly collectionId: string }) {
  const text = useText()
  const { number } = useFormats()
  const [kind, setKind] = useState<(typeof KINDS)[number]>('page')
  const [url, setUrl] = useState('')
  const [refresh, setRefresh] = useState<Refresh>('never')
  const [limit, setLimit] = useState<(typeof LIMITS)[number]>('100')
  const page = useAction(ADD_PAGE)
  const site = useAction(ADD_SITE)
  const failures = useFieldFailures(kind === 'page' ? page.failure : site.failure, ['url'])
  const [isTried, setTried] = useState(false)
  const isAddress = /^https?:\/\/\S+$/i.test(url.trim())
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isAddress) return
    const input = { collectionId, url: url.trim(), refreshSeconds: REFRESH[refresh] }
    if (kind === 'page') {
      if (!(await page.run({ input }))) return
      toast(text('documents.webAdded'))
    } else {
      const done = await site.run({ input: { ...input, limit: Number(limit) } })
      if (!done) return
      const { length } = done.addSite.sources
      toast(text('documents.siteAdded', { count: length, shown: number(length) }))
    }
    setUrl('')
    setTried(false)
  }
  return (
    <Card>
      <form noValidate onSubmit={submit} aria-label={text('documents.webAdd')} className="flex flex-col gap-4">
        <div className="grid gap-4 sm:grid-cols-[14rem_minmax(0,1fr)]">
          <Field label={text('documents.webKind')}>
            {(control) => (
              <Select
                {...control}
                value={kind}
                onChange={setKind}
                options={KINDS.map((value) => ({ value, label: text(`documents.webKind.${value}`) }))}
              />
            )}
          </Field>
          <Field
            label={text('documents.webUrl')}
            help={kind === 'site' ? text('documents.siteHelp') : undefined}
            isRequired
            error={failures.of('url') ?? (isTried && !isAddress ? text('documents.webUrlWrong') : undefined)}
          >
            {(control) => (
              <Input
                {...control}
                type="url"
                dir="ltr"
                placeholder={kind === 'site' ? 'https://example.org/sitemap.xml' : 'https://'}
                maxLength={2048}
                value={url}
                onChange={({ target }) => setUrl(target.value)}
              />
            )}
          </Field>
        </div>
        <div className="flex flex-wrap items-end gap-4">
          <Field label={text('documents.webRefresh')} className="min-w-44">
            {(control) => (
              <Select
                {...control}
                value={refresh}
                onChange={setRefresh}
                options={REFRESH_NAMES.map((value) => ({ value, label: text(`documents.webRefresh.${value}`) }))}
              />
            )}
          </Field>
          {kind === 'site' && (
            <Field label={text('documents.siteLimit')} className="min-w-36">
              {(control) => (
                <Select
                  {...control}
                  value={limit}
                  onChange={setLimit}
                  options={LIMITS.map((value) => ({ value, label: number(Number(value)) }))}
                />
              )}
            </Field>
          )}
          <Button type="submit" variant="primary" isBusy={page.isRunning || site.isRunning} className="ms-auto">
            {text('documents.webFetch')}
          </Button>
        </div>
        <FailureNotice failure={failures.rest} />
      </form>
    </Card>
  )
}
