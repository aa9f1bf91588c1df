import { type ReactNode, useState } from 'react'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Field } from '../../../ui/field.tsx'
import { Textarea } from '../../../ui/input.tsx'
import { EXAMPLE_SCHEMA, readSchema } from './schema.ts'

interface SchemaFieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
  /** The reader has tried to save it. */
  readonly isTried: boolean
  /** The service's error about the field. */
  readonly error: ReactNode
}

/** The JSON Schema of the answer. It shows its problem once the reader leaves the field. */
export function SchemaField({ value, onChange, isTried, error }: SchemaFieldProps) {
  const text = useText()
  const { number } = useFormats()
  const [isLeft, setLeft] = useState(value !== '')
  const read = readSchema(value)
  const problem = 'problem' in read ? read.problem : null
  const say = () => {
    if (!problem) return null
    if (problem.kind === 'notJsonAt') return text('agents.schema.notJsonAt', { line: number(problem.line) })
    return text(`agents.schema.${problem.kind}`, { path: 'path' in problem ? `\u2066${problem.path || '/'}\u2069` : '' })
  }
  return (
    <Field
      label={text('agents.schema')}
      help={text(problem || error ? 'agents.schemaHelp' : 'agents.schema.right')}
      error={(isTried || isLeft) && problem ? say() : error}
    >
      {(control) => (
        <>
          <Textarea
            {...control}
            dir="ltr"
            rows={12}
            spellCheck={false}
            className="font-mono text-xs max-sm:text-sm"
            value={value}
            onBlur={() => setLeft(value !== '')}
            onChange={({ target }) => onChange(target.value)}
          />
          <div className="flex flex-wrap gap-2">
            <Button size="small" disabled={value.trim() !== ''} onClick={() => onChange(EXAMPLE_SCHEMA)}>
              {text('agents.schemaExample')}
            </Button>
            <Button
              size="small"
              disabled={problem !== null}
              onClick={() => 'schema' in read && onChange(JSON.stringify(read.schema, null, 2))}
            >
              {text('agents.schemaFormat')}
            </Button>
          </div>
        </>
      )}
    </Field>
  )
}
