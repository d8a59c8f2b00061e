import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parentOf } from '../base/uid.ts';
import { appendEvent, type OutboxEvent } from '../store/outbox.ts';
import type { Transaction } from '../store/store.ts';
import type { Call } from './http/call.ts';

/** A push or a pull that happened. */
export interface Transfer {
  readonly name: string;
  /** The uid of the repo. */
  readonly repo: string;
  readonly digest: string;
  readonly type: 'manifest' | 'blob';
  readonly tag?: string | undefined;
  /** Where the tag pointed before a push. */
  readonly previousDigest?: string | undefined;
}

export const recordPush = (tx: Transaction, call: Call, transfer: Transfer): Promise<void> =>
  appendEvent(tx, eventOf('push', call, transfer));

/** In the words that existing receivers of registry events know. */
export function eventOf(kind: 'push' | 'pull', call: Call, transfer: Transfer): OutboxEvent {
  const { name, repo, digest, type, tag, previousDigest } = transfer;
  const { req, now, credential } = call;
  const body = {
    repository: name,
    repo_id: repo,
    ...(tag !== undefined && { tag }),
    ...(previousDigest !== undefined && { tag_previous_digest: previousDigest }),
    digest,
    ...(kind === 'pull' && { method: req.method }),
    type,
    when: withoutZone(now),
    // Where on earth a client is would be guesswork.
    location: '',
    remote_address: req.socket.remoteAddress ?? '',
    user_agent: userAgentOf(req),
  };
  const group = parentOf(repo);
  return {
    id: randomUUID(),
    type: `dev.chainguard.registry.${kind}.v1`,
    subject: repo,
    scope: group,
    time: now,
    audience: 'customer',
    extensions: { group },
    actor: credential.caller.actor,
    body: { json: JSON.stringify(body) },
  };
}

/** Receivers refuse a zone; times are in UTC. */
const withoutZone = (ms: number): string => new Date(ms).toISOString().slice(0, -1);

/** Longer ones are no news to anybody. */
const MAX_USER_AGENT = 256;

const userAgentOf = ({ headers }: IncomingMessage): string => headers['user-agent']?.slice(0, MAX_USER_AGENT) ?? '';
