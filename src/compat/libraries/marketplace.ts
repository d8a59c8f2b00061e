import { create, type DescMethodUnary } from '@bufbuild/protobuf';
import { notFound, precondition } from '../../base/errors.ts';
import * as v1 from '../../contract/gen/platform/libraries/v1/aws_marketplace_subscriptions.libraries.platform_pb.js';
import { EcosystemSchema } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { groups } from '../../domains/iam/groups/groups.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';
import { exists } from '../../resource/read.ts';
import * as rules from '../../resource/rules.ts';
import { refuse } from '../../resource/validate.ts';
import type { RequestOf } from '../typed-operation.ts';

const { method } = v1.AWSMarketplaceSubscriptions;

const unavailable = (uid: string) =>
  precondition(
    'MARKETPLACE_NOT_AVAILABLE',
    uid,
    'this server is self-hosted and not connected to AWS Marketplace; create a library entitlement instead',
  );

/** A method that needs the marketplace. It changes nothing, so it is a read. */
const refused = <M extends DescMethodUnary>(method: M, uidOf: (request: RequestOf<M>) => string): Operations =>
  readOperation(method, (_ctx, request) => Promise.reject(unavailable(uidOf(request))));

export const marketplaceOperations: Operations = {
  ...readOperation(method.create, async ({ db }, { parentId, awsToken, ecosystems }) => {
    const problem = rules.list(100, rules.enumValue(EcosystemSchema))(ecosystems);
    refuse([
      ...(awsToken === '' ? [{ field: 'aws_token', description: 'is required' }] : []),
      ...(problem ? [{ field: 'ecosystems', description: problem }] : []),
    ]);
    if (!(await exists(db, groups.kind, parentId))) throw notFound(groups.kind, parentId);
    throw unavailable(parentId);
  }),
  ...refused(method.get, ({ id }) => id),
  // There are no subscriptions, and clients that show them can say so.
  ...readOperation(method.list, () => create(v1.AWSMarketplaceSubscriptionListSchema)),
  ...refused(method.update, ({ subscription }) => subscription?.id ?? ''),
  ...refused(method.cancel, ({ id }) => id),
};
