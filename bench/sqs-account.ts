/** Stand-ins take any. */
export const SQS_ACCOUNT = {
  region: 'elasticmq',
  credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
} as const
