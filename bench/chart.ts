/** Small line charts, one below the other, as SVG that a browser and a code host show as it is. */
export interface Chart {
  readonly title: string
  readonly panels: readonly Panel[]
}

export interface Panel {
  readonly name: string
  /** One each second. */
  readonly values: readonly number[]
  /** A bound, drawn across. */
  readonly line?: number
}

const WIDTH = 760
const LEFT = 60
const TOP = 40
const HEIGHT = 90
const GAP = 44
const FONT = 'font-family="sans-serif" fill="#444"'

export function chart({ title, panels }: Chart): string {
  const height = TOP + panels.length * (HEIGHT + GAP)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="${LEFT}" y="20" font-size="14" ${FONT}>${escaped(title)}</text>`,
    ...panels.map((panel, at) => drawn(panel, TOP + at * (HEIGHT + GAP) + 16)),
    '</svg>\n',
  ].join('\n')
}

function drawn({ name, values, line }: Panel, top: number): string {
  const most = Math.max(1, ...values, line ?? 0)
  const right = WIDTH - 20
  const x = (second: number): number =>
    LEFT + (second * (right - LEFT)) / Math.max(1, values.length - 1)
  const y = (value: number): number => top + HEIGHT - (value / most) * HEIGHT
  const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
  const text = (atX: number, atY: number, said: string, anchor: string): string =>
    `<text x="${atX}" y="${atY}" font-size="11" text-anchor="${anchor}" ${FONT}>${escaped(said)}</text>`
  return [
    text(LEFT, top - 6, name, 'start'),
    text(LEFT - 6, top + 8, String(Math.round(most)), 'end'),
    text(LEFT - 6, top + HEIGHT, '0', 'end'),
    text(right, top + HEIGHT + 14, `${values.length} s`, 'end'),
    `<path d="M${LEFT} ${top}V${top + HEIGHT}H${right}" fill="none" stroke="#999"/>`,
    line === undefined
      ? ''
      : `<path d="M${LEFT} ${y(line).toFixed(1)}H${right}" stroke="#c33" stroke-dasharray="4 3"/>`,
    `<polyline points="${points}" fill="none" stroke="#27c" stroke-width="1.5"/>`,
  ].join('\n')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
