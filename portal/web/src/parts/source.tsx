/** Source text, such as JSON. The keyboard can scroll it, too. */
export function Source({ label, source }: { readonly label: string; readonly source: string }) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard.
      tabIndex={0}
      className="max-h-80 overflow-auto rounded-lg border bg-sunken p-3"
    >
      <pre dir="ltr" className="font-mono text-xs">
        {source}
      </pre>
    </section>
  )
}
