// Serves fauxqs on loopback: its own program listens on all interfaces.
//   node fauxqs-main.ts MODULE PORT
const [module = '', port = ''] = process.argv.slice(2)

interface App {
  listen(at: { readonly host: string; readonly port: number }): Promise<unknown>
}

const { buildApp }: { buildApp(options: { readonly logger: boolean }): App } = await import(module)
await buildApp({ logger: false }).listen({ host: '127.0.0.1', port: Number(port) })
