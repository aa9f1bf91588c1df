// The closing line of a test run: node .ci/count.js REPORT FAILED_STEPS, with vitest's JSON report. A suite that could
// not be loaded counts as one failure, and so does a failed step in which no test failed: type check, lint, a rejection
// that no test awaited.
import { readFileSync } from 'node:fs'

const [path, failedSteps] = process.argv.slice(2)
const report = JSON.parse(readFileSync(path, 'utf8'))
const broken = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length
const failed = report.numFailedTests + broken || Number(failedSteps)
const skipped = report.numPendingTests + report.numTodoTests
console.log(`${report.numPassedTests} passed, ${failed} failed, ${skipped} skipped`)
if (report.numPassedTests === 0 || failed > 0) process.exit(1)
