/** The flags that limit the memory of a server. */
export const v8Flags: readonly string[] = [
  /**
   * Starts a full garbage collection when the heap has twice the size that was alive after the last one. By default
   * V8 waits for up to four times that size, and does not count memory outside of its heap. This matters for gRPC:
   * Node keeps the streams of an HTTP/2 connection in a Map. When a Map grows, its old table references the new one,
   * so tables that have reached the old generation keep all later streams alive until a full collection. A server
   * under gRPC load grew beyond 500 MB, and with this flag stays at about 200 MB. It is not slower.
   */
  '--heap-growing-percent=100',
  /**
   * Limits each of the two semi-spaces of the young generation to 16 MB. By default V8 lets them grow further under load:
   * 30 to 120 MB more. With 8 MB a server takes 12 MB less, but collects four times as often under gRPC load.
   */
  '--max-semi-space-size=16',
  /** Collects the young generation three times during a start instead of ten times, which takes 12 ms less. */
  '--min-semi-space-size=8',
  /** Delays the first full garbage collection beyond the start, which is 20 ms faster then. Memory at rest is the same. */
  '--initial-heap-size=64',
];

/**
 * The flags of Node and V8 that `wharf` is started with. They are read only at the start, so no code sets them: wharf.sh
 * and the scripts of package.json do, and a test compares them with this list. Workers inherit them from their
 * supervisor.
 */
export const startFlags: readonly string[] = [
  ...v8Flags,
  /**
   * SIGUSR1 would open the debugger of Node, through which every user of the machine can run code in the server.
   * wharf.js ignores the signal too, for a start without this flag. The flag also covers the time before it runs.
   */
  '--disable-sigusr1',
  /** Node 22 warns about node:sqlite, which is stable enough for what is used here, on every start. */
  '--disable-warning=ExperimentalWarning',
];
