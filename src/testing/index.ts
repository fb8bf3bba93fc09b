export { type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts'
