import { Link } from '@tanstack/react-router'
import { Play } from 'lucide-react'
import type { ReactNode } from 'react'
import { useText } from '../../i18n/text.tsx'
import { ResidencyBadge } from '../../parts/badges.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { Money } from '../../parts/money.tsx'
import { NotFound } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Sheet } from '../../ui/dialog.tsx'
import { Abilities } from './abilities.tsx'
import { ABILITIES } from './filters.ts'
import type { Model } from './models.ts'

interface ModelSheetProps {
  /** Null: the sheet is closed. */
  readonly model: Model | 'unknown' | null
  readonly onClose: () => void
}

/** All facts of one model. */
export function ModelSheet({ model, onClose }: ModelSheetProps) {
  const text = useText()
  const title = model === null || model === 'unknown' ? text('models.model') : <Code className="font-sans">{model.id}</Code>
  return (
    <Sheet
      isOpen={model !== null}
      onClose={onClose}
      title={title}
      actions={
        model !== null &&
        model !== 'unknown' && (
          <Button asChild variant="primary">
            <Link to="/models/$id/try" params={{ id: model.id }}>
              <Play className="size-4 rtl:-scale-x-100" aria-hidden />
              {text('models.try')}
            </Link>
          </Button>
        )
      }
    >
      {model === 'unknown' && <NotFound />}
      {model !== null && model !== 'unknown' && <Facts model={model} />}
    </Sheet>
  )
}

function Facts({ model }: { readonly model: Model }) {
  const text = useText()
  const { id, kind, vendor, residency, contextWindow, maxOutputTokens, dimensions, createdAt, price, aliases, fallbacks } = model
  const facts: readonly (readonly [string, ReactNode])[] = [
    [
      text('models.id'),
      <span key="id" className="flex items-center gap-1">
        <Code>{id}</Code>
        <CopyButton value={id} label={text('models.copyId')} />
      </span>,
    ],
    [text('models.kind'), text(`models.kind.${kind}`)],
    [text('models.vendor'), <UserText key="vendor">{vendor}</UserText>],
    [text('models.residency'), <ResidencyBadge key="residency" residency={residency} />],
    [text('models.abilities'), ABILITIES.some((ability) => model[ability]) && <Abilities key="abilities" model={model} />],
    [text('models.context'), contextWindow && <Digits key="context" value={contextWindow} />],
    [text('models.maxOutput'), maxOutputTokens && <Digits key="output" value={maxOutputTokens} />],
    [text('models.dimensions'), dimensions && <Digits key="dimensions" value={dimensions} />],
    [
      text('models.aliases'),
      aliases.length > 0 && (
        <span key="aliases" className="flex flex-wrap gap-x-3 gap-y-1">
          {aliases.map((alias) => (
            <Code key={alias}>{alias}</Code>
          ))}
        </span>
      ),
    ],
    [
      text('models.fallbacks'),
      fallbacks.length > 0 && (
        <ol key="fallbacks" className="flex flex-col gap-1">
          {fallbacks.map((fallback) => (
            <li key={fallback.id} className="flex flex-wrap items-center gap-2">
              <Link
                to="/models"
                search={(now) => ({ ...now, model: fallback.id })}
                resetScroll={false}
                className="underline underline-offset-4"
              >
                <Code>{fallback.id}</Code>
              </Link>
              <ResidencyBadge residency={fallback.residency} />
            </li>
          ))}
        </ol>
      ),
    ],
    [text('models.published'), <DateTime key="published" at={createdAt} style="date" />],
  ]
  return (
    <>
      <FactList facts={facts} />
      <h3 className="mt-6 mb-2 text-sm">{text('models.price')}</h3>
      {price ? <Prices price={price} /> : <p className="text-sm text-muted">{text('models.priceUnknown')}</p>}
    </>
  )
}

function Prices({ price }: { readonly price: NonNullable<Model['price']> }) {
  const text = useText()
  const names = ['input', 'cachedInput', 'cacheWrite', 'output', 'audioMinute', 'searchThousand'] as const
  const facts = names.map((name) => [text(`models.price.${name}`), price[name] && <Money key={name} amount={price[name]} />] as const)
  return (
    <>
      <FactList facts={facts} />
      {price.tiers.map(({ aboveInputTokens, input, cachedInput, output }) => (
        <section key={aboveInputTokens} className="mt-4">
          <h4 className="mb-2 text-sm text-muted">{text('models.price.above', { count: aboveInputTokens })}</h4>
          <FactList
            facts={[
              [text('models.price.input'), input && <Money key="input" amount={input} />],
              [text('models.price.cachedInput'), cachedInput && <Money key="cached" amount={cachedInput} />],
              [text('models.price.output'), output && <Money key="output" amount={output} />],
            ]}
          />
        </section>
      ))}
    </>
  )
}
