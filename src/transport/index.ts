export type * from './traits.ts'
export type * from './transport.ts'
