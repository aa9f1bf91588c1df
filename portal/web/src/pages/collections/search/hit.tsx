import { Link } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { MarkedText } from '../../../parts/marked-text.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { DisclosureButton } from '../../../ui/button.tsx'
import { Badge, Card } from '../../../ui/surface.tsx'
import { Tooltip } from '../../../ui/tooltip.tsx'
import { ChunkLocation } from '../common/chunk-location.tsx'
import type { Hit } from './search.ts'

interface HitCardProps {
  readonly collectionId: string
  readonly hit: Hit
  /** Its place in the answer, from 1. */
  readonly rank: number
}

/** A passage that was found: where it stands, its text, its ranks, and why it is here. */
export function HitCard({ collectionId, hit, rank }: HitCardProps) {
  const text = useText()
  const { number } = useFormats()
  const whyId = useId()
  const [isWhyOpen, setWhyOpen] = useState(false)
  const { chunk, lexicalRank, vectorRank, highlights, before, after } = hit
  return (
    <li id={`hit-${rank}`} className="scroll-mt-20">
      <Card className="sm:p-4">
        <header className="mb-2 flex flex-wrap items-start gap-x-3 gap-y-1">
          <span className="flex size-6 shrink-0 items-center justify-center rounded-full bg-sunken text-xs font-medium tabular-nums">
            {number(rank)}
          </span>
          <div className="min-w-0 grow basis-48">
            <Link
              to="/collections/$id/documents/$documentId"
              params={{ id: collectionId, documentId: chunk.document.id }}
              search={{ passage: chunk.id }}
              className="font-medium underline-offset-4 hover:underline"
            >
              <UserText>{chunk.document.name}</UserText>
            </Link>
            <div>
              <ChunkLocation {...chunk} />
            </div>
          </div>
          <div className="flex flex-wrap gap-1.5">
            <Score hit={hit} />
            <Badge>
              {vectorRank === null ? text('searching.noVectorRank') : text('searching.vectorRank', { rank: number(vectorRank) })}
            </Badge>
            <Badge>
              {lexicalRank === null ? text('searching.noLexicalRank') : text('searching.lexicalRank', { rank: number(lexicalRank) })}
            </Badge>
          </div>
        </header>
        {before.map(({ id, text }) => (
          <MarkedText key={id} text={text} marks={[]} className="mb-2 text-sm text-muted" />
        ))}
        <MarkedText text={chunk.text} marks={highlights} className="max-w-4xl text-sm" />
        {after.map(({ id, text }) => (
          <MarkedText key={id} text={text} marks={[]} className="mt-2 text-sm text-muted" />
        ))}
        <footer className="mt-2 flex flex-wrap gap-2">
          <DisclosureButton isOpen={isWhyOpen} onToggle={setWhyOpen} aria-controls={whyId} className="-ms-2.5 text-accent-text">
            {text('searching.why')}
          </DisclosureButton>
        </footer>
        <div id={whyId}>{isWhyOpen && <Why hit={hit} />}</div>
      </Card>
    </li>
  )
}

const RELEVANCE_TONES = { STRONG: 'success', LIKELY: 'info', WEAK: 'neutral' } as const

/** How relevant the passage is, in a word if the score has a known meaning; the tooltip says what it means. */
function Score({ hit: { score, relevance, explanation } }: { readonly hit: Hit }) {
  const text = useText()
  const { number, percent } = useFormats()
  const figure = text('searching.score', { score: number(score, { maximumFractionDigits: 2, minimumFractionDigits: 2 }) })
  const help = relevance
    ? text('searching.scoreHelp', { share: percent(score) })
    : text(explanation.rankBeforeRerank === null ? 'searching.scoreHelpCosine' : 'searching.scoreHelpRerank')
  return (
    <Tooltip label={help}>
      <button type="button" className="flex max-w-full rounded-md" aria-description={help}>
        <Badge tone={relevance ? RELEVANCE_TONES[relevance] : 'neutral'}>
          {relevance && <span>{text(`searching.relevance.${relevance}`)}</span>}
          <span className="font-normal">{figure}</span>
        </Badge>
      </button>
    </Tooltip>
  )
}

/** The figures behind the place of a passage, each with a sentence. */
function Why({ hit: { explanation, vectorRank, lexicalRank } }: { readonly hit: Hit }) {
  const text = useText()
  const { number, percent } = useFormats()
  const { closeness, wordCoverage, gramCoverage, evidence, tokenCloseness, rankBeforeRerank } = explanation
  const signed = (value: number) => number(value, { maximumFractionDigits: 3, signDisplay: 'exceptZero' })
  const facts: readonly (readonly [string, string, string] | null)[] = [
    closeness === null
      ? null
      : [
          text('searching.why.closeness'),
          number(closeness, { maximumFractionDigits: 3 }),
          text('searching.why.closenessHelp', { rank: number(vectorRank ?? 0) }),
        ],
    wordCoverage === null
      ? null
      : [
          text('searching.why.words'),
          percent(wordCoverage),
          text(lexicalRank === null ? 'searching.why.wordsNone' : 'searching.why.wordsHelp'),
        ],
    gramCoverage === null ? null : [text('searching.why.grams'), percent(gramCoverage), text('searching.why.gramsHelp')],
    evidence === 0
      ? null
      : [text('searching.why.evidence'), signed(evidence), text(evidence > 0 ? 'searching.why.evidenceUp' : 'searching.why.evidenceDown')],
    tokenCloseness === 0 ? null : [text('searching.why.tokens'), signed(tokenCloseness), text('searching.why.tokensHelp')],
    rankBeforeRerank === null ? null : [text('searching.why.rerank'), number(rankBeforeRerank), text('searching.why.rerankHelp')],
  ]
  return (
    <dl className="mt-2 grid gap-x-6 gap-y-2 rounded-lg bg-sunken p-3 text-sm sm:grid-cols-[auto_auto_minmax(0,1fr)]">
      {facts
        .filter((fact) => fact !== null)
        .map(([name, value, help]) => (
          <div key={name} className="grid grid-cols-[1fr_auto] gap-x-4 sm:col-span-3 sm:grid-cols-subgrid">
            <dt className="font-medium">{name}</dt>
            <dd className="tabular-nums">{value}</dd>
            <dd className="text-muted max-sm:col-span-2">{help}</dd>
          </div>
        ))}
    </dl>
  )
}
