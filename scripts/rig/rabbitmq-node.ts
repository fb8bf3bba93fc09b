import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Names and ports of one node. */
export interface NodePlace {
  /** Erlang's name of it. */
  readonly node: string
  readonly port: number
  readonly managementPort: number
  readonly distributionPort: number
  readonly epmdPort: number
  /** Whoever knows it may join. */
  readonly cookie: string
}

const LOOPBACK_ONLY = '-kernel inet_dist_use_interface {127,0,0,1}'
/** Schedulers that spin for work would take it from the tests. */
const NO_SPIN = '+sbwt none +sbwtdcpu none +sbwtdio none'

/** For the server and for rabbitmqctl; nothing of the machine's own node is read. */
export function nodeEnv(place: NodePlace, folder: string): NodeJS.ProcessEnv {
  return {
    PATH: `${process.env.PATH}:/usr/sbin:/usr/bin:/bin`,
    LC_ALL: 'C.UTF-8',
    HOME: folder,
    // The script becomes the server then, instead of waiting for it.
    RUNNING_UNDER_SYSTEMD: 'yes',
    RABBITMQ_NODENAME: place.node,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(place.port),
    RABBITMQ_DIST_PORT: String(place.distributionPort),
    ERL_EPMD_PORT: String(place.epmdPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `${LOOPBACK_ONLY} ${NO_SPIN}`,
    RABBITMQ_CONF_ENV_FILE: join(folder, 'rabbitmq-env.conf'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'advanced.config'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_PID_FILE: join(folder, 'rabbitmq.pid'),
  }
}

export interface NodeSettings {
  /** More lines of rabbitmq.conf. */
  readonly config?: readonly string[]
  /** Plugins beside the management. */
  readonly plugins?: readonly string[]
}

export function prepareNode(place: NodePlace, folder: string, settings: NodeSettings): void {
  const { config = [], plugins = [] } = settings
  for (const name of ['mnesia', 'log']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'rabbitmq-env.conf'), '')
  writeFileSync(join(folder, 'plugins'), `[${['rabbitmq_management', ...plugins].join()}].\n`)
  const lines = [
    `management.tcp.port = ${place.managementPort}`,
    'management.tcp.ip = 127.0.0.1',
    'vm_memory_high_watermark.absolute = 512MB',
    'disk_free_limit.absolute = 50MB',
    ...config,
  ]
  writeFileSync(join(folder, 'rabbitmq.conf'), `${lines.join('\n')}\n`)
  const cookie = join(folder, '.erlang.cookie')
  writeFileSync(cookie, place.cookie)
  chmodSync(cookie, 0o400)
}
