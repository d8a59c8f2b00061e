/** The least that a server on grpc-js can do: the same message for every call. */
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';

const same = (bytes: Buffer): Buffer => bytes;

process.once('message', ({ path, message }: { path: string; message: Uint8Array }) => {
  const answer = Buffer.from(message);
  const server = new Server();
  const echo = (_call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>) => respond(null, answer);
  server.register(path, echo, same, same, 'unary');
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    process.send?.(port);
  });
});
