// The closing line of a test run, from vitest's JSON report. A suite that could not be loaded counts as one failure.
import { readFileSync } from 'node:fs'

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const broken = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length
const skipped = report.numPendingTests + report.numTodoTests
console.log(`${report.numPassedTests} passed, ${report.numFailedTests + broken} failed, ${skipped} skipped`)
if (report.numPassedTests === 0 || report.numFailedTests + broken > 0) process.exit(1)
