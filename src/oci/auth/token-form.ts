import type { IncomingMessage } from 'node:http';
import { readBody } from '../http/body.ts';

const MAX_BYTES = 64 * 1024;

/** Reads a token request as docker sends it with OAuth 2.0: the credentials are fields of the form. */
export async function readForm(req: IncomingMessage) {
  const query = new URLSearchParams((await readBody(req, MAX_BYTES)).toString('utf8'));
  const secret = query.get('password') ?? query.get('refresh_token');
  return { authorization: secret === null ? req.headers.authorization : `Bearer ${secret}`, query };
}
