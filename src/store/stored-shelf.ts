/** The dead letters of brokers that cannot list theirs. */
export type { RedrivenLetter, StoredShelf } from '../transport/stored-shelf.ts'
