/** The baseline of gRPC benchmarks: a grpc-js server that sends the same message for every call. */
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';

const identity = (bytes: Buffer): Buffer => bytes;

process.once('message', ({ path, message }: { path: string; message: Uint8Array }) => {
  const response = Buffer.from(message);
  const server = new Server();
  const handle = (_call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>) => respond(null, response);
  server.register(path, handle, identity, identity, 'unary');
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    process.send?.(port);
  });
});
