import { ApolloGateway } from '@apollo/gateway'
import { ApolloServer } from '@apollo/server'
import { startStandaloneServer } from '@apollo/server/standalone'

/**
 * Plain @apollo/gateway behind @apollo/server, as their manuals start them. Expects the supergraph as its argument, and
 * sends its address to the process that started it. Start it with `APOLLO_TELEMETRY_DISABLED`.
 */
const gateway = new ApolloGateway({ supergraphSdl: process.argv[2]! })
const server = new ApolloServer({ gateway })
const { url } = await startStandaloneServer(server, { listen: { port: 0, host: '127.0.0.1' } })
process.send!(url)
process.on('disconnect', () => process.exit())
