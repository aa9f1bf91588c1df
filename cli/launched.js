// Started by `bundled-node.js`. If that process is killed by SIGKILL, only the end of their channel shows it. This
// process then ends as after SIGTERM.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()
await import('./kis.js')
