import { create } from '@bufbuild/protobuf';
import { TERMS_DOCUMENT_IDS } from '../../../base/terms.ts';
import { newUid, rootOf } from '../../../base/uid.ts';
import {
  AcceptTermsResponseSchema,
  TermsAcceptanceSchema,
  TermsService,
} from '../../../contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import { type Operations, writeOperation } from '../../../resource/operation.ts';
import { requireParent } from '../../../resource/parent.ts';
import { find, findChildren } from '../../../resource/read.ts';
import { missingCapabilities } from '../../../resource/require-capabilities.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import { refuse } from '../../../resource/validate.ts';
import { insert } from '../../../resource/write.ts';
import { groups } from './groups.ts';

/** The key of the acceptance of a document for a group by an identity. */
export const acceptanceKey = (group: string, docId: string, identity: string): string =>
  `${group} ${docId} ${identity}`;

/** Records that an identity accepted a document for a group. */
export const termsAcceptances = defineResource({
  kind: 'terms acceptance',
  plural: 'terms acceptances',
  schema: TermsAcceptanceSchema,
  parents: ['group'],
  listedUnder: 'group',
  orders: { doc_id: (acceptance) => acceptance.docId },
  // People have no access until they have accepted, where a document is required.
  grantsAccess: true,
  unique: ({ docId, acceptedBy }, group) => [
    { key: acceptanceKey(group, docId, acceptedBy), taken: `${acceptedBy} has accepted ${docId} already` },
  ],
  indexVersions: { unique: 2 },
});

export const termsOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, termsAcceptances, TermsService),
  ...acceptTerms,
});

/**
 * Records the documents that the group has not accepted yet. Where documents are required of people, each person accepts
 * them, and needs no capability for it. Earlier acceptances stay unchanged.
 */
const acceptTerms = writeOperation(TermsService.method.acceptTerms, {
  async run(ctx, { group, documentIds }) {
    const { db, caller, now } = ctx;
    refuse(
      documentIds.flatMap((id, at) =>
        TERMS_DOCUMENT_IDS.includes(id)
          ? []
          : [{ field: `document_ids[${at}]`, description: `must be one of ${TERMS_DOCUMENT_IDS.join(', ')}` }],
      ),
    );
    const ownDocuments = caller.terms?.required.get(group) ?? [];
    if (caller.terms && !caller.terms.canAcceptAny(group) && !documentIds.every((id) => ownDocuments.includes(id))) {
      throw missingCapabilities(ctx.method.capabilities, group);
    }
    // Locks the group, so that a concurrent call finds what this one inserts.
    await find(db.forUpdate, groups, group);
    const parent = await requireParent(db.forShare, termsAcceptances, group);
    const before = await findChildren(db, termsAcceptances, group);
    const accepted = new Set(
      before
        .filter(({ message }) => message.acceptedBy === caller.uid || !ownDocuments.includes(message.docId))
        .map(({ message }) => message.docId),
    );
    const missing = new Set(documentIds).difference(accepted);
    for (const docId of missing) {
      const message = create(TermsAcceptanceSchema, { docId, acceptedBy: caller.uid, orgUid: rootOf(parent) });
      await insert(db, termsAcceptances, { message, uid: newUid(parent), parent }, now);
    }
    if (missing.size === 0) ctx.unchanged();
    return create(AcceptTermsResponseSchema, { group, documentIds: [...new Set(documentIds)] });
  },
  event: (_ctx, { group }, message) => ({
    subject: group,
    extensions: { group },
    body: { schema: AcceptTermsResponseSchema, message },
  }),
});
