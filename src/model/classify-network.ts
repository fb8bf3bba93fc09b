import type { Classification } from './classify.ts'
import { type CodeRule, codeRulesAsTable, indexRules, type Rule } from './classify-rule.ts'
import { read, readString } from './probe.ts'

/** Codes of Node, of its fetch (undici), and names of errors that DOM interfaces throw. */
const rules: readonly CodeRule[] = [
  {
    codes: [
      'ECONNREFUSED',
      'ECONNRESET',
      'ECONNABORTED',
      'EPIPE',
      'ENOTCONN',
      'EHOSTUNREACH',
      'EHOSTDOWN',
      'ENETUNREACH',
      'ENETDOWN',
      'ENETRESET',
      'EADDRNOTAVAIL',
      'EADDRINUSE',
      'EPROTO',
      'ERR_STREAM_PREMATURE_CLOSE',
      'ERR_SOCKET_CLOSED',
      'CONNECTION_CLOSED',
      'CONNECTION_ENDED',
      'CONNECTION_DESTROYED',
    ],
    errorClass: 'transient',
    why: 'the network or the other side was not there',
  },
  {
    codes: [
      'ETIMEDOUT',
      'ESOCKETTIMEDOUT',
      'ERR_SOCKET_CONNECTION_TIMEOUT',
      'ERR_HTTP_REQUEST_TIMEOUT',
      'CONNECT_TIMEOUT',
      'UND_ERR_CONNECT_TIMEOUT',
      'UND_ERR_HEADERS_TIMEOUT',
      'UND_ERR_BODY_TIMEOUT',
      'TimeoutError',
    ],
    errorClass: 'transient',
    why: 'no answer in time',
  },
  {
    codes: ['AbortError', 'ABORT_ERR', 'UND_ERR_ABORTED'],
    errorClass: 'transient',
    why: 'the call was aborted, by a timeout or a shutdown',
  },
  {
    codes: ['ENOTFOUND', 'EAI_AGAIN', 'ENODATA', 'ESERVFAIL'],
    errorClass: 'transient',
    why: 'the name was not resolved; name servers fail for minutes and names come back',
  },
  {
    codes: [
      'UND_ERR_SOCKET',
      'UND_ERR_CLOSED',
      'UND_ERR_DESTROYED',
      'UND_ERR_INFO',
      'UND_ERR_REQ_RETRY',
      'UND_ERR_HEADERS_OVERFLOW',
    ],
    errorClass: 'transient',
    why: 'the HTTP client lost its connection',
  },
  {
    codes: [
      'CERT_HAS_EXPIRED',
      'CERT_NOT_YET_VALID',
      'CERT_REVOKED',
      'CERT_UNTRUSTED',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'ERR_TLS_HANDSHAKE_TIMEOUT',
    ],
    errorClass: 'transient',
    why: 'a certificate is repaired by its owner while the message stays the same',
  },
  {
    codes: ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC', 'EDQUOT', 'EAGAIN', 'EBUSY', 'EINTR', 'EIO'],
    errorClass: 'transient',
    why: 'this machine was short of something',
  },
  {
    codes: [
      'ERR_INVALID_URL',
      'ERR_INVALID_PROTOCOL',
      'ERR_INVALID_CHAR',
      'ERR_UNESCAPED_CHARACTERS',
      'ERR_HTTP_INVALID_HEADER_VALUE',
      'UND_ERR_INVALID_ARG',
      'UND_ERR_NOT_SUPPORTED',
    ],
    errorClass: 'permanent',
    why: 'the request cannot be made from this payload',
  },
]

const byCode = indexRules(rules)

export const networkTable: readonly Rule[] = [
  ...codeRulesAsTable('Node', rules),
  {
    family: 'Node',
    match: 'HPE_*',
    errorClass: 'transient',
    why: 'the other side did not answer with HTTP',
  },
]

export function classifyNetwork(error: unknown): Classification | undefined {
  const code = readString(error, 'code')
  if (code?.startsWith('HPE_')) {
    return { errorClass: 'transient', code, why: 'the other side did not answer with HTTP' }
  }
  return from(code) ?? from(readString(error, 'name'))
}

function from(code: string | undefined): Classification | undefined {
  const rule = code === undefined ? undefined : byCode.get(code)
  return code === undefined || rule === undefined
    ? undefined
    : { errorClass: rule.errorClass, code, why: rule.why }
}

const FETCH_FAILED = new Set(['fetch failed', 'terminated', 'Failed to fetch'])

/** What fetch throws when it has no better word; asked only after its causes had nothing to say. */
export function classifyFetch(error: unknown): Classification | undefined {
  const message = read(error, 'message')
  if (readString(error, 'name') !== 'TypeError' || typeof message !== 'string') return undefined
  if (!FETCH_FAILED.has(message)) return undefined
  return { errorClass: 'transient', code: 'FETCH_FAILED', why: fetchRule.why }
}

export const fetchRule: Rule = {
  family: 'Node',
  match: 'TypeError "fetch failed" whose cause says nothing',
  errorClass: 'transient',
  why: 'fetch lost its connection',
}
