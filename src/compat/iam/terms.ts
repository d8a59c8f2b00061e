import { create } from '@bufbuild/protobuf';
import { TermsService } from '../../contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { Terms, TermsDocumentStatusSchema } from '../../contract/gen/platform/iam/v1/terms.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList } from '../adapt-list.ts';

export const termsOperations = (operations: Operations): Operations => ({
  ...adapt(operations, Terms.method.acceptTerms, TermsService.method.acceptTerms, {
    request: ({ group, documentIds }) => ({ group, documentIds }),
    response: ({ group, documentIds }) => ({ group, documentIds }),
  }),
  ...adaptList(operations, Terms.method.listAccepted, TermsService.method.listTermsAcceptances, {
    request: ({ group }) => ({ group }),
    response: ({ termsAcceptances }) =>
      termsAcceptances.map(({ docId, acceptedBy, createTime }) =>
        create(TermsDocumentStatusSchema, { docId, acceptedBy, ...(createTime && { acceptedAt: createTime }) }),
      ),
  }),
});
