import { create } from '@bufbuild/protobuf';
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
import { standardOperations } from '../../../resource/standard-methods.ts';
import { refuse } from '../../../resource/validate.ts';
import { insert } from '../../../resource/write.ts';
import { groups } from './groups.ts';

/** The ids of the documents that can be accepted. */
const DOCUMENTS: readonly string[] = ['guardener-tos.v1', 'sfdpa.v1', 'skills-tos.v1'];

/** Records that an identity accepted a document for a group. */
export const termsAcceptances = defineResource({
  kind: 'terms acceptance',
  plural: 'terms acceptances',
  schema: TermsAcceptanceSchema,
  parents: ['group'],
  listedUnder: 'group',
  orders: { doc_id: (acceptance) => acceptance.docId },
  unique: ({ docId }, group) => [{ key: `${group} ${docId}`, taken: `${group} has accepted ${docId} already` }],
});

export const termsOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, termsAcceptances, TermsService),
  ...acceptTerms,
});

/** Records the documents that the group has not accepted yet. Earlier acceptances stay unchanged. */
const acceptTerms = writeOperation(TermsService.method.acceptTerms, {
  async run(ctx, { group, documentIds }) {
    const { db, caller, now } = ctx;
    refuse(
      documentIds.flatMap((id, at) =>
        DOCUMENTS.includes(id)
          ? []
          : [{ field: `document_ids[${at}]`, description: `must be one of ${DOCUMENTS.join(', ')}` }],
      ),
    );
    // Locks the group, so that a concurrent call finds what this one inserts.
    await find(db.forUpdate, groups, group);
    const parent = await requireParent(db.forShare, termsAcceptances, group);
    const before = await findChildren(db, termsAcceptances, group);
    const accepted = new Set(before.map(({ message }) => message.docId));
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
