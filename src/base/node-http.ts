/**
 * The functions of `node:http` that the server uses. They are not imported: an import statement reads all exports of a
 * module, and the export `WebSocket` of `node:http` loads undici, which takes 13 MB and 30 ms of each start.
 */
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http');
