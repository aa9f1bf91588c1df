import { Server } from 'node:net'

// Preloaded into a peer that listens on every address and has no setting for it: the measured service is for this
// machine alone.
const { listen } = Server.prototype
Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, { port: typeof port === 'object' ? port.port : port, host: '127.0.0.1' }, ...rest.filter((value) => typeof value === 'function'))
}
