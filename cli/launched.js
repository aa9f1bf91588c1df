// What `bundled-node.js` starts. When the process that started it is killed by SIGKILL, only the end of their channel tells: it then ends as by SIGTERM.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()
await import('./kis.js')
