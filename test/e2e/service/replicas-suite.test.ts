import { onBothEngines } from '../../support/processes/replicas.ts'
import { endToEnd } from './suite/index.ts'

const NAME = 'two of knowledge and of inference on MongoDB and Elasticsearch'

await onBothEngines(`End to end, ${NAME}`, (start) => {
  endToEnd(NAME, (options) => start({ ...options, replicas: { knowledge: 2, inference: 2 } }))
})
