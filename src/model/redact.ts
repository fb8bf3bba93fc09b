const GONE = '[redacted]'

/** Text beyond this is not looked at and not kept. */
const LOOKED_AT_MAX = 32_768

const SECRET_NAME =
  '(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|' +
  'credential|session[_-]?id|signature|x-amz-security)'

/**
 * What a secret looks like in the text of an error, and what stays of it. Every repetition is bounded or cannot
 * overlap with its neighbours, so that hostile text costs linear time.
 */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}-----)?/g, GONE],
  // scheme://user:password@host
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#"'<>]{0,2000}@/gi, `$1${GONE}@`],
  // ?token=…&X-Amz-Signature=…
  [
    new RegExp(
      `([?&;](?:[\\w.%[\\]-]{0,40}(?:${SECRET_NAME}|auth|jwt)[\\w.%[\\]-]{0,20}|key|sig|code|sid)=)[^&#\\s"'<>]+`,
      'gi',
    ),
    `$1${GONE}`,
  ],
  // Authorization: … and Cookie: …, as a header line, an object or JSON.
  [
    /\b((?:proxy-)?authorization|(?:set-)?cookie)(\\{0,3}["']?\s{0,5}[:=,]\s{0,5}\[?\s{0,5}\\{0,3}["'`]?)[^\r\n"'`\\]+/gi,
    `$1$2${GONE}`,
  ],
  [/\b(Bearer|Negotiate)\s{1,5}(?!token\b|auth|realm|scheme)[^\s"'`,;\\)\]}]+/gi, `$1 ${GONE}`],
  [/\b(Basic)\s{1,5}(?!auth|realm)[A-Za-z0-9+/_-]{4,}={0,2}/gi, `$1 ${GONE}`],
  [/\b(Digest)\s{1,5}\w{1,20}=[^\r\n]*/gi, `$1 ${GONE}`],
  // password=…, "token": "…", apiKey: '…', also inside an escaped JSON text.
  [
    new RegExp(
      `\\b([\\w.-]{0,40}${SECRET_NAME}[\\w-]{0,20}\\\\{0,3}["'\`]?\\s{0,5}[:=]\\s{0,5})` +
        '(?!\\[redacted)(?:\\\\{1,3}"[^"\\\\]*|"(?:[^"\\\\]|\\\\.)*"?|\'(?:[^\'\\\\]|\\\\.)*\'?|`[^`]*`?|[^\\s,;&"\'`}\\])]+)',
      'gi',
    ),
    `$1${GONE}`,
  ],
  // Shapes of well-known keys, wherever they stand.
  [/\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{4,}/g, GONE],
  [/\bsk-[A-Za-z0-9_-]{16,}/g, GONE],
  [/\bwhsec_[A-Za-z0-9+/=]{8,}/g, GONE],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g, GONE],
  [/\bAIza[A-Za-z0-9_-]{20,}/g, GONE],
  [/\b(?:gh[opsur]_|github_pat_|glpat-|npm_)[A-Za-z0-9_-]{16,}/g, GONE],
  [/\bxox[a-z]-[A-Za-z0-9-]{8,}/g, GONE],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?/g, GONE],
]

/**
 * Takes secrets out of text that will be stored, logged or shown: credentials in URLs, authorization headers, cookies,
 * named secrets and well-known key shapes. A safety net, not a permission to put secrets into messages. Linear time;
 * text beyond 32,768 characters is cut.
 */
export function redact(text: string): string {
  let left = text.length > LOOKED_AT_MAX ? text.slice(0, LOOKED_AT_MAX) : text
  for (const [pattern, replacement] of patterns) left = left.replace(pattern, replacement)
  return left
}

/** Controls that a store or a terminal may choke on become visible; half characters become U+FFFD. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, (c) => {
    const code = c.charCodeAt(0)
    return code === 0x7f ? '\u2421' : String.fromCharCode(0x2400 + code)
  })
}

/** At most `maxBytes` of UTF-8, cut between characters, with an ellipsis where something was cut. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text
  const whole = new Uint8Array(maxBytes)
  const { read } = new TextEncoder().encodeInto(text, whole)
  if (read === text.length) return text
  const room = new Uint8Array(Math.max(0, maxBytes - ELLIPSIS_BYTES))
  return `${text.slice(0, new TextEncoder().encodeInto(text, room).read)}…`
}

const ELLIPSIS_BYTES = 3
