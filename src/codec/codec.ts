/** Turns a payload into bytes and back. */
export interface Codec {
  readonly contentType: string
  /** @throws MILLRACE_UNSERIALIZABLE_PAYLOAD with the path of the value that cannot travel. */
  encode(payload: unknown): Uint8Array
  /**
   * What `decode(encode(payload))` would give, beside the bytes, where both together are cheaper. Default: the two calls.
   * @throws as `encode`
   */
  encodeDecoded?(payload: unknown): { readonly bytes: Uint8Array; readonly decoded: unknown }
  /** @throws any error when the bytes are not of this codec; the message is then dead (permanent). */
  decode(bytes: Uint8Array): unknown
}
