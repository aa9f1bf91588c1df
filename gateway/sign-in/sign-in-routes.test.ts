import { expect, it } from 'vitest'
import { OrganizationSuspended, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import { isOwnFault } from './sign-in-routes.ts'

it('distinguishes errors of the person from failures of the service', () => {
  expect([new OrganizationSuspended(), Object.assign(new Error('bad'), { statusCode: 400 })].map(isOwnFault)).toEqual([true, true])
  expect([new ServiceUnavailable('Billing'), new TypeError('defect'), null].map(isOwnFault)).toEqual([false, false, false])
})
