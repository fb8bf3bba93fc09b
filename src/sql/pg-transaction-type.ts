/**
 * The part of node-postgres' PoolClient that a transaction needs. Named here, so that the types of Millrace can be read
 * without those of pg; give your own Pool and you get its own client type.
 */
export interface PgTransactionClient {
  query<R = Record<string, unknown>>(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: R[]; readonly rowCount: number | null }>
}

/** What a transaction on this pool gives its user: pg's PoolClient, or postgres.js' TransactionSql. */
export type PgTransactionOf<Pool> =
  // Both have overloads, and TypeScript infers from overloads only pair by pair.
  Pool extends {
    begin: { (run: (tx: infer Sql) => never): unknown; (options: string, run: never): unknown }
  }
    ? Sql
    : Pool extends { connect: { (): Promise<infer Client>; (callback: never): void } }
      ? Client
      : Pool extends { connect(): Promise<infer Client> }
        ? Client
        : unknown
