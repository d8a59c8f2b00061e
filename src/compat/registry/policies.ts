import { create } from '@bufbuild/protobuf';
import { CheckPoliciesResponseSchema, Policies } from '../../contract/gen/platform/registry/v1/policy.platform_pb.js';
import { requireParsedManifest } from '../../domains/registry/images/find-image.ts';
import { requireRepo } from '../../domains/registry/repos/repos.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';

/** The API has no method that defines a policy for images, so none is bound to a repo and none has a result. */
export const policyOperations: Operations = readOperation(
  Policies.method.checkPolicies,
  async ({ db }, { repoId, digest }) => {
    await requireRepo(db, repoId);
    await requireParsedManifest(db, repoId, digest);
    return create(CheckPoliciesResponseSchema);
  },
);
