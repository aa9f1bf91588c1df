import { Plus, Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Checkbox } from '../../../ui/choices.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Textarea } from '../../../ui/input.tsx'
import { MAX_SERVERS, newServer, type ServerDraft } from './draft.ts'

interface ServersProps {
  readonly servers: readonly ServerDraft[]
  readonly onChange: (servers: readonly ServerDraft[]) => void
  readonly say: (field: string) => ReactNode
}

/** The MCP servers whose tools an agent may use. */
export function Servers({ servers, onChange, say }: ServersProps) {
  const text = useText()
  const { number, list } = useFormats()
  return (
    <>
      <p className="text-sm text-muted">{text('agents.serversHelp')}</p>
      {servers.map((server, index) => {
        const change = (next: Partial<ServerDraft>) =>
          onChange(servers.map((each) => (each.key === server.key ? { ...each, ...next } : each)))
        const at = `mcpServers[${index}]`
        return (
          <fieldset key={server.key} className="relative flex flex-col gap-4 rounded-lg border p-4">
            <legend className="px-1 text-sm font-medium">{text('agents.server', { index: number(index + 1) })}</legend>
            <IconButton
              label={text('agents.serverRemove', { index: number(index + 1) })}
              icon={Trash2}
              size="small"
              className="absolute end-2 top-0"
              onClick={() => onChange(servers.filter(({ key }) => key !== server.key))}
            />
            <div className="grid gap-4 sm:grid-cols-[minmax(0,1fr)_minmax(0,2fr)]">
              <Field label={text('agents.serverName')} error={say(`${at}.name`)} isRequired>
                {(control) => (
                  <Input {...control} dir="ltr" value={server.name} onChange={({ target }) => change({ name: target.value })} />
                )}
              </Field>
              <Field label={text('agents.serverUrl')} error={say(`${at}.url`)} isRequired>
                {(control) => (
                  <Input
                    {...control}
                    type="url"
                    dir="ltr"
                    placeholder="https://"
                    value={server.url}
                    onChange={({ target }) => change({ url: target.value })}
                  />
                )}
              </Field>
            </div>
            <Field
              label={text('agents.serverHeaders')}
              help={
                server.kept.length > 0 ? text('agents.serverHeadersStored', { names: list(server.kept) }) : text('agents.serverHeadersHelp')
              }
              error={say(`${at}.headers`)}
            >
              {(control) => (
                <Textarea
                  {...control}
                  dir="ltr"
                  rows={2}
                  spellCheck={false}
                  autoComplete="off"
                  placeholder="authorization: Bearer …"
                  value={server.headers}
                  onChange={({ target }) => change({ headers: target.value })}
                />
              )}
            </Field>
            {server.kept.length > 0 && server.headers.trim() === '' && (
              <Checkbox
                label={text('agents.serverHeadersRemove')}
                checked={server.isWithoutHeaders}
                onChange={(isWithoutHeaders) => change({ isWithoutHeaders })}
              />
            )}
            <Field label={text('agents.serverTools')} help={text('agents.serverToolsHelp')} error={say(`${at}.allowedTools`)}>
              {(control) => (
                <Textarea
                  {...control}
                  dir="ltr"
                  rows={2}
                  spellCheck={false}
                  value={server.tools}
                  onChange={({ target }) => change({ tools: target.value })}
                />
              )}
            </Field>
          </fieldset>
        )
      })}
      <div>
        <Button icon={Plus} disabled={servers.length >= MAX_SERVERS} onClick={() => onChange([...servers, newServer()])}>
          {text('agents.serverAdd')}
        </Button>
      </div>
    </>
  )
}
