/** The functions of inference that commands need, over an open store. */

export { resealAgents } from './use-cases/agents/agent-secrets.ts'
export { exportAgents } from './use-cases/portable/export-agents.ts'
export { agentTakers } from './use-cases/portable/import-agents.ts'
export { type Collections as AgentCollections, openCollections as openAgentCollections } from './use-cases/tables.ts'
