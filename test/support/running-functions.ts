import { Session } from 'node:inspector/promises'

/** Names of the functions of the package that run meanwhile. */
export async function functionsOf(name: string, run: () => Promise<unknown>): Promise<readonly string[]> {
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true })
    await run()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    return result
      .filter(({ url }) => url.includes(`/node_modules/${name}/`))
      .flatMap(({ functions }) => functions.filter(({ ranges }) => ranges[0]!.count > 0).map(({ functionName }) => functionName))
  } finally {
    session.disconnect()
  }
}
