// @apollo/gateway reads this when a gateway is made and would report its environment to Apollo. Imported before everything of Apollo's.
process.env.APOLLO_TELEMETRY_DISABLED = '1'
