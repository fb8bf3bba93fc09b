type Step = string | number

const PLAIN_KEY = /^[A-Za-z_$][\w$]{0,63}$/
const KEY_MAX = 64
const STEPS_MAX = 20

/** `items[3].price`, keys with odd characters as `["a b"]`; long paths keep both ends. The root is the empty string. */
export function pathText(path: readonly Step[]): string {
  const half = STEPS_MAX / 2
  if (path.length > STEPS_MAX) {
    return `${pathText(path.slice(0, half))}…${pathText(path.slice(-half))}`
  }
  return path.map(stepText).join('').replace(/^\./, '')
}

function stepText(step: Step): string {
  if (typeof step === 'number') return `[${step}]`
  return PLAIN_KEY.test(step) ? `.${step}` : `[${JSON.stringify(step.slice(0, KEY_MAX))}]`
}
