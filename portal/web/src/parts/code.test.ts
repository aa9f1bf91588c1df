import { expect, it } from 'vitest'
import { codeOf } from './code.ts'

it.each([
  ['Hiring & HR 2026', 'hiring-hr-2026'],
  ['  Réponses for Employees! ', 'reponses-for-employees'],
  [' Café №2! ', 'cafe-no2'],
  ['سياسات hr', 'hr'],
  ['', ''],
  ['  ', ''],
])('creates a code from %j', (name, code) => expect(codeOf(name, 'agent')).toBe(code))

it.each(['مساعد الموارد البشرية', '٢٠٢٦ 2026', '😀'])('creates a distinct code for %j, without Latin letters', (name) => {
  expect(codeOf(name, 'agent')).toMatch(/^agent-[a-z0-9]{6}$/)
  expect(codeOf(name, 'agent')).toBe(codeOf(name, 'agent'))
  expect(codeOf(name, 'agent')).not.toBe(codeOf(`${name}ا`, 'agent'))
})

it('a code is at most 64 characters long', () => expect(codeOf('a'.repeat(500), 'agent')).toHaveLength(64))
