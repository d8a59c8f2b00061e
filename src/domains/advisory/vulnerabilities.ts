import type { Message } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import { isWithin, rootOf } from '../../base/uid.ts';
import {
  type ListVulnerabilityMetadataRequest,
  VulnerabilityMetadataSchema,
} from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { defineResource, type Resource } from '../../resource/definition.ts';
import { findByKeys } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';

const MAX_IDS = 1000;

/** What is known of vulnerabilities. v2 only reads it; imports write it. */
export const vulnerabilities: Resource<typeof VulnerabilityMetadataSchema> = defineResource({
  kind: 'vulnerability',
  plural: 'vulnerabilities',
  schema: VulnerabilityMetadataSchema,
  parents: ['group'],
  unique: ({ id }, group) => [
    { key: vulnerabilityKey(group, id), taken: `${id} is known in this organization already` },
  ],
  orders: { id: ({ id }) => id },
  defaultOrder: 'id',
  named: { fields: ['id', 'ids'], uids: findNamed },
});

/** Within an organization, and whatever the case: `cve-2024-1` is no other vulnerability than `CVE-2024-1`. */
export const vulnerabilityKey = (group: string, id: string): string => `${rootOf(group)}/${id.toLowerCase()}`;

async function findNamed(db: Reader, request: Message, reach: readonly string[]): Promise<string[] | undefined> {
  const { id, ids } = request as ListVulnerabilityMetadataRequest;
  if (id === '' && ids.length === 0) return undefined;
  const listed = new Set(ids);
  if (listed.size > MAX_IDS) throw invalid('ids', `must have at most ${MAX_IDS} different ids`);
  const wanted = id === '' ? [...listed] : [id].filter((one) => listed.size === 0 || listed.has(one));
  const organizations = [...new Set(reach.map(rootOf))];
  const keys = organizations.flatMap((organization) => wanted.map((one) => vulnerabilityKey(organization, one)));
  const uids = await findByKeys(db, vulnerabilities, keys);
  return [...uids.values()].filter((uid) => reach.some((scope) => isWithin(uid, scope)));
}
