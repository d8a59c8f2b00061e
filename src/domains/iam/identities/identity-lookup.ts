import { create } from '@bufbuild/protobuf';
import { parentOf, ROOT, type Uid } from '../../../base/uid.ts';
import {
  IdentitiesService,
  LookupIdentityRequestSchema,
  LookupIdentityResponseSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { readOperation } from '../../../resource/operation.ts';
import { findAll, findReferring } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { refuse, validate } from '../../../resource/validate.ts';
import type { Reader } from '../../../store/store.ts';
import { identities, subjectKey } from './identities.ts';
import { stableUid } from './stable-uid.ts';

export const identityLookupOperations = readOperation(
  IdentitiesService.method.lookupIdentity,
  async ({ db }, request) => {
    refuse(
      validate(LookupIdentityRequestSchema, request, {
        issuer: rules.line(rules.MAX_LINE),
        subject: rules.line(rules.MAX_LINE),
      }),
    );
    const { issuer, subject } = request;
    const uid = (await findPerson(db, issuer, subject)) ?? stableUid(issuer, subject);
    return create(LookupIdentityResponseSchema, { uid });
  },
);

/** The uid of the person with this issuer and subject. The oldest when there are several, as at login. */
async function findPerson(db: Reader, issuer: string, subject: string): Promise<Uid | undefined> {
  const uids = await findReferring(db, identities, 'subject', subjectKey(issuer, subject));
  const people = uids.filter((uid) => parentOf(uid) === ROOT);
  const [oldest] = (await findAll(db, identities, people)).sort((a, b) => a.created - b.created);
  return oldest?.uid;
}
