import '../model/node-version.ts'

export type * from './traits.ts'
export type * from './transport.ts'
