import { create } from '@bufbuild/protobuf';
import { parentOf, ROOT } from '../../../base/uid.ts';
import {
  IdentitiesService,
  type LookupIdentityRequest,
  LookupIdentityRequestSchema,
  LookupIdentityResponseSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { Operation, Operations } from '../../../resource/operation.ts';
import { findAll, findReferring } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { refuse, validate } from '../../../resource/validate.ts';
import type { Reader } from '../../../store/store.ts';
import { identities, subjectKey } from './identities.ts';
import { stableUid } from './stable-uid.ts';

const lookUp: Operation = {
  mode: 'read',
  async run({ db }, request) {
    refuse(validate(LookupIdentityRequestSchema, request, { issuer: rules.line(2048), subject: rules.line(2048) }));
    const { issuer, subject } = request as LookupIdentityRequest;
    const uid = (await registered(db, issuer, subject)) ?? stableUid(issuer, subject);
    return create(LookupIdentityResponseSchema, { uid });
  },
};

export const identityLookupOperations: Operations = {
  [`${IdentitiesService.typeName}/${IdentitiesService.method.lookupIdentity.name}`]: lookUp,
};

/** The person whom the issuer knows by this subject, the oldest of them: the one that such a token logs in as. */
async function registered(db: Reader, issuer: string, subject: string): Promise<string | undefined> {
  const uids = await findReferring(db, identities, 'subject', subjectKey(issuer, subject));
  const people = uids.filter((uid) => parentOf(uid) === ROOT);
  const [oldest] = (await findAll(db, identities, people)).sort((a, b) => a.created - b.created);
  return oldest?.uid;
}
