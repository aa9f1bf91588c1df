// Stands for packages that are not used: see no-telemetry.ts.
