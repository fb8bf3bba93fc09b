export interface KafkaNode {
  readonly id: number
  readonly port: number
  readonly controllerPort: number
}

const COORDINATORS = ['offsets.topic', 'transaction.state.log', 'share.coordinator.state.topic']
/** A rebalance waits for none of these longer than a test can bear. */
const QUICK = [
  'group.initial.rebalance.delay.ms=0',
  'group.min.session.timeout.ms=1000',
  'group.consumer.heartbeat.interval.ms=500',
  'group.consumer.min.heartbeat.interval.ms=500',
  'group.consumer.session.timeout.ms=6000',
  'group.consumer.min.session.timeout.ms=3000',
  'group.share.heartbeat.interval.ms=500',
  'group.share.min.heartbeat.interval.ms=500',
  'group.share.session.timeout.ms=6000',
  'group.share.min.session.timeout.ms=3000',
]

/** server.properties of a node that is broker and controller; with three nodes, two of them must have a record. */
export function kafkaConfig(
  node: KafkaNode,
  nodes: readonly KafkaNode[],
  data: string,
  more: readonly string[],
): string {
  const copies = Math.min(nodes.length, 3)
  const minIsr = copies > 1 ? 2 : 1
  const voters = nodes.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`)
  const here = `PLAINTEXT://127.0.0.1:${node.port}`
  const lines = [
    'process.roles=broker,controller',
    `node.id=${node.id}`,
    `listeners=${here},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    `advertised.listeners=${here}`,
    'controller.listener.names=CONTROLLER',
    'inter.broker.listener.name=PLAINTEXT',
    'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    `controller.quorum.voters=${voters.join(',')}`,
    `log.dirs=${data}`,
    'num.partitions=6',
    'auto.create.topics.enable=false',
    `default.replication.factor=${copies}`,
    `min.insync.replicas=${minIsr}`,
    ...COORDINATORS.flatMap((topic) => coordinator(topic, copies, minIsr)),
    'log.segment.bytes=67108864',
    'log.cleaner.dedupe.buffer.size=16777216',
    ...QUICK,
    ...more,
  ]
  return `${lines.join('\n')}\n`
}

function coordinator(topic: string, copies: number, minIsr: number): readonly string[] {
  const isr = topic === 'offsets.topic' ? [] : [`${topic}.min.isr=${minIsr}`]
  return [`${topic}.replication.factor=${copies}`, `${topic}.num.partitions=3`, ...isr]
}
