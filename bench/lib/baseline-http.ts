/**
 * The baseline of HTTP benchmarks: a node:http server that sends the same bytes for every request. The first message
 * has these bytes, and its reply is the port. The reply to `{ cpu: true }` is the processor time so far.
 */
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cpuMicroseconds } from './cpu.ts';

interface ConstantResponse {
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

process.on('message', (message: ConstantResponse | { readonly cpu: true }) => {
  if ('cpu' in message) {
    process.send?.(cpuMicroseconds());
    return;
  }
  const { headers, body } = message;
  const server = createServer((_req, res) => {
    res.writeHead(200, headers);
    res.end(body);
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
