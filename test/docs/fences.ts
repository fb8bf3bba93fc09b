import { projectFiles, read } from '../source-files.ts'

/** One fenced block of a Markdown file. */
export interface Fence {
  readonly file: string
  /** Of the first line of code. */
  readonly line: number
  /** `ts` */
  readonly language: string
  /** `no-run` */
  readonly mark: string
  readonly text: string
}

const FENCE = /^```(\w+)[ \t]*([^\n]*)\n([\s\S]*?)^```/gm

export function fences(files: RegExp, language: string): readonly Fence[] {
  return projectFiles(files).flatMap((file) => {
    const text = read(file)
    return [...text.matchAll(FENCE)]
      .map(([, name = '', mark = '', code = ''], i, all) => ({
        file,
        line: text.slice(0, all[i]?.index).split('\n').length + 1,
        language: name,
        mark: mark.trim(),
        text: code,
      }))
      .filter((fence) => fence.language === language)
  })
}

export const DOCUMENTS: RegExp = /^(README|ARCHITECTURE)\.md$|^docs\/.*\.md$|^src\/.*README\.md$/
