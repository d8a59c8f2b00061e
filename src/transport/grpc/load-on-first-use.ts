import type { GrpcServer, GrpcServerOptions } from './grpc.ts';

/**
 * A gRPC server that is loaded for the first connection: the library and the registration of all methods would be a
 * twentieth of every start, and of the memory of servers that only REST clients use.
 */
export function loadGrpcOnFirstUse(options: GrpcServerOptions): GrpcServer {
  let loading: Promise<GrpcServer> | undefined;
  let isDraining = false;

  async function load(): Promise<GrpcServer> {
    const { createGrpcServer } = await import('./grpc.ts');
    const server = createGrpcServer(options);
    if (isDraining) server.drain();
    return server;
  }

  return {
    accept(socket) {
      loading ??= load();
      void loading.then((server) => {
        if (!socket.destroyed) server.accept(socket);
      });
    },
    drain() {
      isDraining = true;
      void loading?.then((server) => server.drain());
    },
    stop: async (closed) => (loading ? (await loading).stop(closed) : closed),
  };
}
