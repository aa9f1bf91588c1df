import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { runOnSocket } from './socket-transport.ts'

it('sending to a client that has just disconnected is no defect', async () => {
  const sent: string[] = []
  const socket = Object.assign(new EventEmitter(), {
    ...{ protocol: 'graphql-transport-ws', readyState: 1, OPEN: 1 },
    send(text: string, done: (error: Error) => void) {
      sent.push(text)
      done(new Error('write EPIPE'))
    },
  })
  let send: ((text: string) => unknown) | undefined
  const server = {
    opened(opened: { send(text: string): unknown }) {
      send = opened.send
      return async () => undefined
    },
  }
  runOnSocket(server as never, socket as unknown as WebSocket, {}, silentLog)
  await expect(send!('hello')).resolves.toBeUndefined()
  expect(sent).toEqual(['hello'])
  socket.emit('close', 1006, '')
})
