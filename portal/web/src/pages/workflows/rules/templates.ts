import type { JsonObject } from '../../../data/is-object.ts'
import type { Definition } from './definition.ts'

/** The values that a template needs to create a definition. */
export interface Needs {
  readonly model: string
  readonly collection: string
}

export const TEMPLATES = ['blank', 'ask', 'search', 'sort', 'each'] as const
export type TemplateName = (typeof TEMPLATES)[number]

interface Template {
  readonly needs: readonly (keyof Needs)[]
  readonly create: (needs: Needs) => Definition
}

const textInput = (name: string): JsonObject => ({ type: 'object', required: [name], properties: { [name]: { type: 'string' } } })

export const DEFINITIONS: Readonly<Record<TemplateName, Template>> = {
  blank: {
    needs: [],
    create: () => ({
      inputs: textInput('name'),
      nodes: [{ id: 'greet', type: 'template', template: 'Hello {{ inputs.name }}' }],
      output: { text: { $ref: 'nodes.greet.text' } },
    }),
  },
  ask: {
    needs: ['model'],
    create: ({ model }) => ({
      inputs: textInput('question'),
      nodes: [{ id: 'ask', type: 'chat', model, messages: [{ role: 'user', content: '{{ inputs.question }}' }] }],
      output: { answer: { $ref: 'nodes.ask.text' } },
    }),
  },
  search: {
    needs: ['collection', 'model'],
    create: ({ model, collection }) => ({
      inputs: textInput('question'),
      nodes: [
        { id: 'find', type: 'search', collection_id: collection, query: '{{ inputs.question }}', limit: 5 },
        {
          id: 'answer',
          type: 'chat',
          model,
          messages: [
            { role: 'system', content: 'Answer from these passages only. If they do not say it, say so.\n\n{{ nodes.find.text }}' },
            { role: 'user', content: '{{ inputs.question }}' },
          ],
        },
      ],
      output: { answer: { $ref: 'nodes.answer.text' }, chunks: { $ref: 'nodes.find.count' } },
    }),
  },
  sort: {
    needs: ['model'],
    create: ({ model }) => ({
      inputs: textInput('message'),
      nodes: [
        {
          id: 'read',
          type: 'chat',
          model,
          messages: [{ role: 'user', content: 'Is this message a complaint? Answer yes or no.\n\n{{ inputs.message }}' }],
        },
        {
          id: 'route',
          type: 'branch',
          cases: [{ name: 'complaint', when: { left: '{{ nodes.read.text | lower }}', op: 'contains', right: 'yes' } }],
          default: 'other',
        },
        { id: 'escalate', type: 'template', template: 'For the care team: {{ inputs.message }}', after: ['route.complaint'] },
        { id: 'file', type: 'template', template: 'For the archive: {{ inputs.message }}', after: ['route.other'] },
      ],
      output: { text: { $ref: 'nodes.escalate.text ?? nodes.file.text' } },
    }),
  },
  each: {
    needs: ['model'],
    create: ({ model }) => ({
      inputs: {
        type: 'object',
        required: ['questions'],
        properties: { questions: { type: 'array', items: { type: 'string' }, maxItems: 100 } },
      },
      nodes: [
        {
          id: 'answers',
          type: 'map',
          over: { $ref: 'inputs.questions' },
          node: { type: 'chat', model, messages: [{ role: 'user', content: '{{ item }}' }] },
        },
        { id: 'report', type: 'template', template: '{{ nodes.answers.items[*].text | join("\\n\\n") }}' },
      ],
      output: { report: { $ref: 'nodes.report.text' }, count: { $ref: 'nodes.answers.count' } },
    }),
  },
}
