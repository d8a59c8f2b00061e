import { parentOf, type Uid } from '../base/uid.ts';
import { type AnyEventFacts, outboxEvent } from '../pipeline/record-event.ts';
import type { OutboxEvent } from '../store/outbox.ts';
import type { OciCall } from './http/call.ts';

/** The content of a repository that a call has pushed, pulled or deleted. */
export interface RegistryContent {
  readonly name: string;
  /** The uid of the repo. */
  readonly repo: Uid;
  readonly digest: string;
  readonly type: 'manifest' | 'blob';
  readonly tag?: string | undefined;
  /** What the tag pointed to before a push. */
  readonly previousDigest?: string | undefined;
}

/** The facts of a registry event. The fields of its body are those that existing receivers of registry events expect. */
export function registryEvent({ req, address, now }: OciCall, content: RegistryContent): AnyEventFacts {
  const { name, repo, digest, type, tag, previousDigest } = content;
  const body = {
    repository: name,
    repo_id: repo,
    ...(tag !== undefined && { tag }),
    ...(previousDigest !== undefined && { tag_previous_digest: previousDigest }),
    digest,
    ...(isPull(req.method) && { method: req.method }),
    type,
    when: withoutTimeZone(now),
    // The geographic location of the client, which this server does not know.
    location: '',
    remote_address: address,
    user_agent: req.headers['user-agent']?.slice(0, MAX_USER_AGENT) ?? '',
  };
  return { subject: repo, extensions: { group: parentOf(repo) }, body: { json: JSON.stringify(body) } };
}

/** The event of a pull, which is not part of a transaction. */
export const pullEvent = (call: OciCall, content: RegistryContent): OutboxEvent =>
  outboxEvent(call, registryEvent(call, content));

const isPull = (verb: string | undefined): boolean => verb === 'GET' || verb === 'HEAD';

/** Existing receivers refuse a time zone. Times are in UTC. */
const withoutTimeZone = (ms: number): string => new Date(ms).toISOString().slice(0, -1);

const MAX_USER_AGENT = 256;
