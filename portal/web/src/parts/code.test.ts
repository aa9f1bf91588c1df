import { expect, it } from 'vitest'
import { codeOf } from './code.ts'

it.each([
  ['Hiring & HR 2026', 'hiring-hr-2026'],
  ['  Réponses for Employees! ', 'reponses-for-employees'],
  [' Café №2! ', 'cafe-no2'],
  ['سياسات hr', 'hr'],
  ['إجابات', ''],
  ['', ''],
])('makes a code of %j', (name, code) => expect(codeOf(name)).toBe(code))

it('is at most 64 characters long', () => expect(codeOf('a'.repeat(500))).toHaveLength(64))
