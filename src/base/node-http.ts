/**
 * Node's HTTP, for the layers that may use the network. It is not imported: an import reads all that a module exports, and
 * with the WebSocket of `node:http` comes undici, 13 MB and 30 ms of each start that nobody here has a use for.
 */
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http');
