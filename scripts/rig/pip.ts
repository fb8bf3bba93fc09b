import { run, which } from './command.ts'

/** For the program inside the package; its Python code is never run, so the version of Python is fixed. */
const ANY_PYTHON = ['--only-binary=:all:', '--python-version', '3.11']

/** Puts one package, without what it depends on, into a folder. */
export async function pipInstall(requirement: string, folder: string): Promise<void> {
  const python = await which('python3', ['/usr/bin'])
  if (python === undefined) throw new Error('python3 is not on PATH')
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-input']
  const where = ['--no-deps', '--no-compile', '--target', folder, '--upgrade']
  await run(python, ['-m', 'pip', 'install', ...quiet, ...ANY_PYTHON, ...where, requirement])
}
