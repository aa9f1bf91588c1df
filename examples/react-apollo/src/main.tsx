import { ApolloProvider, useLazyQuery, useQuery, useSubscription } from '@apollo/client/react'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { ASK, connect, DOCUMENT_UPDATED, DOCUMENTS, HOME, SEARCH } from './client'

type Service = ReturnType<typeof connect>

function Field({ label, send, type = 'text' }: { label: string; send: (text: string) => void; type?: string }) {
  return (
    <form action={(form) => send(String(form.get('text')))}>
      <input name="text" type={type} aria-label={label} placeholder={label} required /> <button type="submit">OK</button>
    </form>
  )
}

const Failure = ({ error }: { error?: { message: string } | null }) => error && <p role="alert">{error.message}</p>

function Documents({ id, sockets }: { id: string; sockets: Service['sockets'] }) {
  const { data, error, refetch } = useQuery(DOCUMENTS, { variables: { id } })
  const documents = data?.collection.documents.edges.map(({ node }) => node) ?? []
  const updates = useSubscription(DOCUMENT_UPDATED, {
    variables: { id },
    onData: ({ data: { data: event } }) => {
      if (!documents.some((document) => document.id === event?.documentUpdated.documentId)) void refetch()
    },
  })
  // The list may have changed while there was no connection.
  useEffect(() => sockets.on('connected', () => void refetch()), [sockets, refetch])
  return (
    <section>
      <Failure error={error ?? updates.error} />
      <ul aria-label="Documents">
        {documents.map(({ id, name, status }) => (
          <li key={id}>{`${name}: ${status}`}</li>
        ))}
      </ul>
    </section>
  )
}

function Search({ id }: { id: string }) {
  const [search, { data, error }] = useLazyQuery(SEARCH, { fetchPolicy: 'network-only' })
  return (
    <section>
      <Field label="Search" send={(query) => void search({ variables: { id, query } })} />
      <Failure error={error} />
      <ol aria-label="Hits">
        {data?.searchCollection.hits.map(({ chunk: { id, text, document } }) => (
          <li key={id}>{`${document.name}: ${text}`}</li>
        ))}
      </ol>
    </section>
  )
}

function Answer(variables: { agent: string; question: string; idempotencyKey: string }) {
  const [text, setText] = useState('')
  const { data, error } = useSubscription(ASK, {
    variables,
    fetchPolicy: 'no-cache',
    // A repeat after a break brings the events of the run again, from the first.
    onData: ({ data: { data: event } }) =>
      setText((before) => (event?.agentRun.type === 'STEP_STARTED' ? '' : before + (event?.agentRun.textDelta ?? ''))),
  })
  const run = data?.agentRun.run
  return (
    <section aria-label="Answer">
      <Failure error={error ?? run?.error} />
      <p>{run?.outputText ?? text}</p>
      {run?.citations.map(({ mark, fileName, text }) => (
        <blockquote key={mark}>{`[#${mark}] ${fileName}: ${text}`}</blockquote>
      ))}
    </section>
  )
}

function Ask({ agent }: { agent: string }) {
  const [current, setCurrent] = useState<{ question: string; idempotencyKey: string }>()
  return (
    <section>
      <Field label="Ask" send={(question) => setCurrent({ question, idempotencyKey: crypto.randomUUID() })} />
      {current && <Answer key={current.idempotencyKey} agent={agent} {...current} />}
    </section>
  )
}

function Home({ sockets }: { sockets: Service['sockets'] }) {
  const { data, error } = useQuery(HOME)
  const [collection, agent] = [data?.collections.edges[0]?.node, data?.agents.edges[0]?.node]
  return (
    <main>
      <Failure error={error} />
      {collection && <h1>{collection.name}</h1>}
      {collection && <Documents id={collection.id} sockets={sockets} />}
      {collection && <Search id={collection.id} />}
      {agent && <h1>{agent.name}</h1>}
      {agent && <Ask agent={agent.id} />}
    </main>
  )
}

function App() {
  const [service, setService] = useState<Service>()
  if (!service) return <Field label="API key" type="password" send={(key) => setService(connect(key))} />
  return (
    <ApolloProvider client={service.apollo}>
      <Home sockets={service.sockets} />
    </ApolloProvider>
  )
}

createRoot(document.getElementById('root')!).render(<App />)
