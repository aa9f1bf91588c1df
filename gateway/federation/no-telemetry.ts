// @apollo/gateway reads this when a gateway is created, and would otherwise report its environment to Apollo. Import
// this file before anything of Apollo's.
process.env.APOLLO_TELEMETRY_DISABLED = '1'
