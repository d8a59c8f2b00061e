import type { GrpcServer, GrpcServerOptions } from './grpc.ts';

/**
 * A gRPC server that is loaded for the first request: the library and the registration of all methods would be a
 * twentieth of every start, and of the memory of servers that only REST clients use.
 */
export function loadGrpcOnFirstUse(options: GrpcServerOptions): GrpcServer {
  let loaded: GrpcServer | undefined;
  let loading: Promise<GrpcServer> | undefined;
  let isDraining = false;

  async function load(): Promise<GrpcServer> {
    const { createGrpcServer } = await import('./grpc.ts');
    loaded = createGrpcServer(options);
    if (isDraining) loaded.drain();
    return loaded;
  }

  return {
    serve(...request) {
      if (loaded) {
        loaded.serve(...request);
        return;
      }
      loading ??= load();
      void loading.then((server) => server.serve(...request));
    },
    drain() {
      isDraining = true;
      loaded?.drain();
    },
    stop: async (closed) => (loading ? (await loading).stop(closed) : closed),
  };
}
