import { type ComponentProps, useEffect, useRef, useState } from 'react'
import { Input } from '../ui/input.tsx'

/** How long after the last key the list is asked for. */
const WAIT_MS = 300

interface SearchBoxProps extends Omit<ComponentProps<'input'>, 'value' | 'onChange'> {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A part of a name to look for. It tells what was typed once the reader stops typing. */
export function SearchBox({ label, value, onChange, ...rest }: SearchBoxProps) {
  const [typed, setTyped] = useState(value)
  const reported = useRef(value)
  const onChangeRef = useRef(onChange)
  onChangeRef.current = onChange
  // The address changed otherwise, such as by "back".
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
