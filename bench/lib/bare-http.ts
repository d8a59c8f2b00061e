/** The least that a server on node:http can do: the same bytes for every request. */
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Answer {
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

process.on('message', (message: Answer | { readonly cpu: true }) => {
  if ('cpu' in message) {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
    return;
  }
  const { headers, body } = message;
  const server = createServer((_req, res) => {
    res.writeHead(200, headers);
    res.end(body);
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
