import { run } from 'node:test'
import type { Tally, TestReport } from './tally.ts'
import type { Wave } from './waves.ts'

export interface WaveLimits {
  readonly signal: AbortSignal
  /** A file that takes longer has failed. */
  readonly fileTimeoutMs: number
}

/** Runs the files of a wave, each in a process of its own, and tells the tally what happened. */
export async function runWave(wave: Wave, tally: Tally, limits: WaveLimits): Promise<void> {
  const stream = run({
    files: [...wave.files],
    concurrency: wave.concurrency,
    execArgv: ['--conditions=millrace-source', '--disable-warning=ExperimentalWarning'],
    timeout: limits.fileTimeoutMs,
    signal: limits.signal,
  })
  const ended = new Set<string>()
  const end = (file: string): void => {
    if (!ended.has(file)) tally.ended(file)
    ended.add(file)
  }
  // Events about a file as a whole carry no entryFile.
  const endsFile = ({ entryFile, name }: TestReport): void => {
    if (entryFile === undefined) end(name)
  }
  // This one comes at once; the others wait for the report of the file before. A summary may still come first.
  stream.on('test:complete', (data: TestReport) => {
    if (data.entryFile === undefined) tally.took(data.name, data.details.duration_ms)
  })
  stream.on('test:pass', (data: TestReport) => {
    tally.passed(data)
    endsFile(data)
  })
  stream.on('test:fail', (data: TestReport) => {
    // What the stop ended is no failure.
    if (limits.signal.aborted) return
    tally.failed(data)
    endsFile(data)
  })
  stream.on('test:stdout', (data) => tally.wrote(data.file, data.message))
  stream.on('test:stderr', (data) => tally.wrote(data.file, data.message))
  stream.on('test:summary', (data) => {
    if (data.file === undefined) return
    tally.took(data.file, data.duration_ms)
    if (!limits.signal.aborted) end(data.file)
  })
  const over = Promise.withResolvers<void>()
  stream.on('error', over.reject)
  stream.on('end', over.resolve)
  stream.resume()
  await over.promise
  const left = wave.files.filter((file) => !ended.has(file))
  if (!limits.signal.aborted) for (const file of left) end(file)
  else if (left.length > 0) tally.interrupted(left)
}
