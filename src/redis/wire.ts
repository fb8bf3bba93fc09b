/** A command's arguments. */
export type Args = readonly (string | Buffer)[]

/** What a reply is made of; texts are bytes when they were asked for as bytes. */
export type Reply = string | number | Buffer | null | readonly Reply[] | Error

/** The one view that this transport has of a client: a server, a cluster or sentinels, ours or given. */
export interface Wire {
  /** Whether it finds the right one of several servers. */
  readonly finds: boolean
  /** One command, sent to where `key` lives. Rejects when the connection is lost before the answer. */
  send(key: string | undefined, args: Args, bytes: boolean): Promise<Reply>
  isReady(): boolean
  /** Resolves when commands can be sent; rejects when an attempt to connect has failed. */
  ready(): Promise<void>
  /** Which connection it is on now; see `renew`. */
  generation(): number
  /**
   * Gives up the connection of this generation, which no longer answers, and opens another. Nothing when that has
   * happened already (many calls wait on one), and for a client that was given.
   */
  renew(generation: number): void
  /** Calls `hear` for each message of the channel, and after each reconnect. Resolves, too, when `renewEar` has taken over meanwhile. */
  listen(channel: string, hear: () => void): Promise<void>
  /** Asks the listening connection for a sign of life. */
  probeEar(): Promise<unknown>
  /** Opens the listening connection again, with all its channels. */
  renewEar(): Promise<void>
  /** Ends what is ours. Never waits for a server. */
  close(): void
}
