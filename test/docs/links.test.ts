import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'node:test'
import { projectFiles, ROOT, read } from '../source-files.ts'

const documents = projectFiles(/\.md$/)

test('Every link inside the repository leads somewhere, its heading included.', () => {
  const broken = documents.flatMap((file) =>
    linksOf(file)
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => !leads(file, link))
      .map((link) => `${file}: ${link}`),
  )
  assert.deepEqual(broken, [])
})

test('Every guide can be reached from README.md.', () => {
  const reached = linksOf('README.md').map((link) => posix.normalize(link.split('#')[0] ?? ''))
  const guides = projectFiles(/^docs\/guide\/.*\.md$/)
  assert.deepEqual(
    guides.filter((guide) => !reached.includes(guide)),
    [],
  )
})

function linksOf(file: string): readonly string[] {
  const prose = read(file)
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link ?? '')
}

function leads(from: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const to = path === '' ? from : posix.join(posix.dirname(from), path)
  if (!existsSync(join(ROOT, to))) return false
  if (anchor === undefined || statSync(join(ROOT, to)).isDirectory()) return true
  return headings(to).includes(anchor)
}

/** As GitHub makes anchors of them. */
function headings(file: string): readonly string[] {
  return [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
