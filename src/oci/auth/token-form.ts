import type { IncomingMessage } from 'node:http';
import type { MemoryBudget } from '../../base/memory-budget.ts';
import { readBody } from '../http/body.ts';
import type { BodyTimeout } from '../http/call.ts';

/** Limits for the form, which is read before its sender is authenticated. */
export interface FormLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly budget: MemoryBudget;
}

/** Reads a token request as docker sends it with OAuth 2.0: the credentials are fields of the form. */
export async function readForm(req: IncomingMessage, bodyTimeout: BodyTimeout, limits: FormLimits) {
  bodyTimeout.shorten(limits.timeoutMs);
  const query = new URLSearchParams((await readBody(req, limits.maxBytes, limits.budget)).toString('utf8'));
  const secret = query.get('password') ?? query.get('refresh_token');
  return { authorization: secret === null ? req.headers.authorization : `Bearer ${secret}`, query };
}
