import type { Http2Server, Http2ServerOptions } from './http2-server.ts';

/** An HTTP/2 server that is loaded for the first connection, because most servers have only clients of HTTP/1.1. */
export function loadHttp2OnFirstUse(options: Http2ServerOptions): Http2Server {
  let loading: Promise<Http2Server> | undefined;
  let isClosing = false;

  async function load(): Promise<Http2Server> {
    const { createHttp2Server } = await import('./http2-server.ts');
    return createHttp2Server(options);
  }

  return {
    accept(socket) {
      loading ??= load();
      void loading.then((server) => {
        if (isClosing) socket.destroy();
        else if (!socket.destroyed) server.accept(socket);
      });
    },
    drain() {
      void loading?.then((server) => server.drain());
    },
    close() {
      isClosing = true;
      void loading?.then((server) => server.close());
    },
    refuseRunning() {
      void loading?.then((server) => server.refuseRunning());
    },
  };
}
