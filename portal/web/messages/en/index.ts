import agents from './agents.json'
import collections from './collections.json'
import common from './common.json'
import document from './document.json'
import documents from './documents.json'
import errors from './errors.json'
import evaluation from './evaluation.json'
import home from './home.json'
import keys from './keys.json'
import models from './models.json'
import operator from './operator.json'
import organization from './organization.json'
import people from './people.json'
import searching from './searching.json'
import settings from './settings.json'
import usage from './usage.json'
import wallet from './wallet.json'
import webhooks from './webhooks.json'
import workflows from './workflows.json'

export const messages = {
  ...agents,
  ...collections,
  ...common,
  ...document,
  ...documents,
  ...errors,
  ...evaluation,
  ...home,
  ...keys,
  ...models,
  ...operator,
  ...organization,
  ...people,
  ...searching,
  ...settings,
  ...usage,
  ...wallet,
  ...webhooks,
  ...workflows,
}
