import { type ComponentProps, useEffect, useRef, useState } from 'react'
import { Input } from '../ui/input.tsx'

/** How long after the last key the list is queried. */
const WAIT_MS = 300

interface SearchBoxProps extends Omit<ComponentProps<'input'>, 'value' | 'onChange'> {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A field for a part of a name. It reports the text once the reader stops typing. */
export function SearchBox({ label, value, onChange, ...rest }: SearchBoxProps) {
  const [typed, setTyped] = useState(value)
  const reported = useRef(value)
  const onChangeRef = useRef(onChange)
  onChangeRef.current = onChange
  // The address changed by other means, such as "back".
  useEffect(() => {
    if (value === reported.current) return
    reported.current = value
    setTyped(value)
  }, [value])
  useEffect(() => {
    if (typed === reported.current) return
    const timer = setTimeout(() => {
      reported.current = typed
      onChangeRef.current(typed)
    }, WAIT_MS)
    return () => clearTimeout(timer)
  }, [typed])
  return (
    <Input
      {...rest}
      type="search"
      aria-label={label}
      placeholder={label}
      maxLength={200}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
    />
  )
}
