import { expect, it } from 'vitest'
import { readMessages, runsOfAnswers } from './messages.ts'

it('reads the questions and answers of a thread', () => {
  const parts = [{ type: 'text', text: 'What is this?' }, { type: 'image_url', image_url: { url: 'data:' } }, null]
  expect(
    readMessages([{ role: 'user', content: parts }, { role: 'tool', content: 'x' }, { role: 'assistant', content: 'A map.' }, null]),
  ).toEqual([
    { role: 'user', text: 'What is this?' },
    { role: 'assistant', text: 'A map.' },
  ])
})

it('assigns each answer its run, from the newest on', () => {
  const messages = readMessages(
    ['user', 'assistant', 'user', 'assistant', 'user', 'assistant'].map((role, index) => ({ role, content: String(index) })),
  )
  expect(runsOfAnswers(messages, ['run_3', 'run_2'])).toEqual([null, null, null, 'run_2', null, 'run_3'])
  expect(runsOfAnswers(messages, [])).toEqual([null, null, null, null, null, null])
})
