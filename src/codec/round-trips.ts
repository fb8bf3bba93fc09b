/**
 * True when what JSON gave back says the same as what went in: no Date that became a text, no instance that became a plain object. A
 * property that is undefined may be absent, which reads the same.
 */
export function roundTrips(sent: unknown, back: unknown): boolean {
  if (typeof sent !== 'object' || sent === null) return Object.is(sent, back)
  if (typeof back !== 'object' || back === null) return false
  if (Array.isArray(sent)) return Array.isArray(back) && everyMember(sent, back)
  const prototype: unknown = Object.getPrototypeOf(sent)
  return (prototype === Object.prototype || prototype === null) && everyMember(sent, back)
}

function everyMember(sent: object, back: object): boolean {
  return Object.keys(sent).every((key) =>
    roundTrips(
      Reflect.get(sent, key),
      Object.hasOwn(back, key) ? Reflect.get(back, key) : undefined,
    ),
  )
}
