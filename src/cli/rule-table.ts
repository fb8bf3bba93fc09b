import { explainTable } from '../model/classify-error.ts'
import { table, terminalJson } from './terminal-text.ts'

/** Every built-in rule, in the order in which they are asked. */
export function ruleTable(json: boolean): readonly string[] {
  if (json) return [terminalJson(explainTable)]
  return table(
    ['FAMILY', 'CLASS', 'WHY', 'MATCHES'],
    explainTable.map(({ family, errorClass, why, match }) => [family, errorClass, why, match]),
  )
}
