import type { FastifyInstance } from 'fastify'
import { KisError } from '../subgraphs/common/errors.ts'
import { MESSAGES_DIALECT } from './messages/errors.ts'

const AGENTS =
  'Create an agent with POST /v1/agents, and run it with POST /v1/agents/{id}/runs, which can store the conversation in a thread.'

const STATELESS = 'Send the whole conversation as `input` of POST /v1/responses, with the `output` of the responses before.'

/**
 * Parts of the chat protocol that are not offered, and what to use instead. A final slash stands for everything below.
 */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  images: 'Image generation is not offered. Models with `supports_vision` take images as input of POST /v1/chat/completions.',
  assistants: `Assistants are not offered. ${AGENTS}`,
  threads: `Threads are not offered. ${AGENTS}`,
  fine_tuning: 'Fine-tuning is not offered. Put your knowledge into a collection: POST /v1/collections.',
  'responses/': `Responses are not stored, so you cannot fetch them later. To cancel one, disconnect. ${STATELESS}`,
  'messages/batches': 'Batches of messages are not offered. Send each to POST /v1/messages.',
  conversations: `Conversations are not stored. ${STATELESS}`,
  vector_stores: 'Vector stores are not offered. Use collections: POST /v1/collections, and POST /v1/collections/{id}/search.',
  moderations:
    'Moderation is not offered. Ask a model to classify the text: POST /v1/chat/completions with a `response_format` of JSON schema.',
  uploads: 'Uploads in parts are not offered. Send the file to POST /v1/files as a form, or to /v1/uploads/tus by tus.',
  batches: 'Batches are not offered. Send each request to its own URL, such as POST /v1/chat/completions.',
  completions: 'Text completions are not offered. Use POST /v1/chat/completions.',
}

/** Registers routes that refuse these parts and name the alternative. */
export function registerNotOffered(app: FastifyInstance): void {
  for (const [part, message] of Object.entries(NOT_OFFERED)) {
    const onRequest = async () => {
      throw new KisError('not_offered', message)
    }
    const config = part.startsWith('messages') ? { dialect: MESSAGES_DIALECT } : {}
    const urls = part.endsWith('/') ? [`/v1/${part}*`] : [`/v1/${part}`, `/v1/${part}/*`]
    for (const url of urls) app.all(url, { onRequest, config }, onRequest)
  }
}
