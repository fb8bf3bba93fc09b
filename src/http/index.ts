import '../model/node-version.ts'

export type { IntakeOptions } from '../runtime/intake-options.ts'
export { HttpStatusError } from './http-status-error.ts'
export { type HttpTarget, type HttpTargetOptions, httpTarget } from './http-target.ts'
export { type Intake, intake } from './intake.ts'
export type { IntakeApp } from './intake-options.ts'
export { signWebhook } from './sign-webhook.ts'
