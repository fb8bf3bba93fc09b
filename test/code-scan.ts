/**
 * The text without comments, texts in quotes and regular expressions, so that words in them mean nothing. What stands
 * between `${` and `}` of a template is code. Lines and columns stay where they were.
 */
export function codeOf(text: string): string {
  let out = ''
  let at = 0
  /** Open braces; true for one that a template opened. */
  const braces: boolean[] = []
  const hide = (to: number): void => {
    out += text.slice(at, to).replaceAll(/[^\n]/g, ' ')
    at = to
  }
  const template = (from: number): void => {
    const end = endOfTemplate(text, from)
    if (text.startsWith('${', end)) braces.push(true)
    hide(text.startsWith('${', end) ? end + 2 : end + 1)
  }
  while (at < text.length) {
    const char = text[at] ?? ''
    const hidden = endOfHidden(text, at, out)
    if (hidden !== undefined) hide(hidden)
    else if (char === '`') template(at + 1)
    else if (char === '}' && braces.pop() === true) template(at + 1)
    else {
      if (char === '{') braces.push(false)
      out += char
      at += 1
    }
  }
  return out
}

/** Where a comment, a quoted text or a regular expression that begins at `at` ends. */
function endOfHidden(text: string, at: number, codeBefore: string): number | undefined {
  const char = text[at] ?? ''
  if (text.startsWith('//', at)) return endOr(text.indexOf('\n', at), text)
  if (text.startsWith('/*', at)) return endOr(text.indexOf('*/', at), text, 2)
  if (char === "'" || char === '"') return endOfQuoted(text, at + 1, char)
  if (char === '/' && /(^|[(,=:[!&|?{};+>]|\breturn)\s*$/.test(codeBefore.slice(-40))) {
    return endOfRegExp(text, at + 1)
  }
  return undefined
}

function endOr(found: number, text: string, add = 0): number {
  return found === -1 ? text.length : found + add
}

function endOfQuoted(text: string, from: number, quote: string): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === quote) return at + 1
  }
  return text.length
}

function endOfRegExp(text: string, from: number): number {
  let inClass = false
  for (let at = from; at < text.length; at += 1) {
    const char = text[at]
    if (char === '\\') at += 1
    else if (char === '[') inClass = true
    else if (char === ']') inClass = false
    else if (char === '/' && !inClass) return at + 1
  }
  return text.length
}

/** At the closing backtick, or at the next `${`. */
function endOfTemplate(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '`' || text.startsWith('${', at)) return at
  }
  return text.length
}
