import { resealAgents } from './use-cases/agents/agent-secrets.ts'
import { exportAgents } from './use-cases/portable/export-agents.ts'
import { agentTakers } from './use-cases/portable/import-agents.ts'
import { type Collections, openCollections } from './use-cases/tables.ts'

/** What commands need of inference, over an open store. */

export { agentTakers, type Collections as AgentCollections, exportAgents, openCollections as openAgentCollections, resealAgents }
