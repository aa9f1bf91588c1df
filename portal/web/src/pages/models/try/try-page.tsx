import { getRouteApi, Link } from '@tanstack/react-router'
import { useQueryResult } from '../../../data/query-result.ts'
import { Text, useText } from '../../../i18n/text.tsx'
import { ResidencyBadge } from '../../../parts/badges.tsx'
import { PageHeader } from '../../../parts/page-header.tsx'
import { NotFound, WhenReady } from '../../../parts/states.tsx'
import { Code } from '../../../parts/user-text.tsx'
import { ChatTrial } from './chat-trial.tsx'
import { EmbeddingTrial } from './embedding-trial.tsx'
import { MODEL } from './operations.ts'
import { RerankTrial } from './rerank-trial.tsx'
import { TranscriptionTrial } from './transcription-trial.tsx'

const route = getRouteApi('/models/$id/try')
const TRIALS = { CHAT: ChatTrial, EMBEDDING: EmbeddingTrial, RERANK: RerankTrial, TRANSCRIPTION: TranscriptionTrial } as const

/** One model at work, with the reader's own text. */
export function TryPage() {
  const text = useText()
  const { id } = route.useParams()
  const result = useQueryResult(MODEL, { id })
  return (
    <WhenReady result={result}>
      {({ model }) => {
        if (!model) return <NotFound />
        const Trial = TRIALS[model.kind]
        return (
          <>
            <PageHeader
              title={text('models.tryTitle', { id })}
              heading={
                <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
                  <span>
                    <Text
                      id="models.tryTitle"
                      values={{
                        id: (
                          <Code key="id" className="font-sans text-[1em]">
                            {id}
                          </Code>
                        ),
                      }}
                    />
                  </span>
                  <ResidencyBadge residency={model.residency} />
                </span>
              }
              lead={text(`models.try.${model.kind}`)}
              back={
                <Link to="/models" search={{ model: id }}>
                  {text('models.title')}
                </Link>
              }
            />
            <Trial key={id} modelId={id} acceptsImages={model.supportsVision ?? false} />
          </>
        )
      }}
    </WhenReady>
  )
}
