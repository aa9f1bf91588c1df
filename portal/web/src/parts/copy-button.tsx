import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useText } from '../i18n/text.tsx'
import { IconButton } from '../ui/button.tsx'
import { toast } from '../ui/toast.tsx'

const SHOWN_MS = 2_000

/** Copies a text to the clipboard. `label` says what it copies. */
export function CopyButton({ value, label, className }: { readonly value: string; readonly label?: string; readonly className?: string }) {
  const text = useText()
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [isCopied])
  const copy = () =>
    navigator.clipboard.writeText(value).then(
      () => setCopied(true),
      () => toast(text('common.copyFailed'), 'danger'),
    )
  return (
    <IconButton
      size="small"
      label={isCopied ? text('common.copied') : (label ?? text('common.copy'))}
      icon={isCopied ? Check : Copy}
      onClick={copy}
      className={className}
    />
  )
}
