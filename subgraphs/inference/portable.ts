/** What an export and an import of an organization need of inference, over an open store. */

export { exportAgents } from './use-cases/portable/export-agents.ts'
export { agentTakers } from './use-cases/portable/import-agents.ts'
export { type Collections as AgentCollections, openCollections as openAgentCollections } from './use-cases/tables.ts'
