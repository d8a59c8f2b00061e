import { create } from '@bufbuild/protobuf';
import {
  IdentitiesService,
  IdentityMetadataSchema,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  Identities,
  IdentityMetadata_OnboardingQuestionsSchema,
} from '../../contract/gen/platform/events/v1/identities.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { createMessageMapper } from '../message-mapper.ts';

/** v1 nests some of the fields of v2 in a message with answers to onboarding questions. */
const answersMapper = createMessageMapper(IdentityMetadata_OnboardingQuestionsSchema, IdentityMetadataSchema, {
  renames: { company_name: 'company' },
  onlyV1: ['providers'],
  onlyV2: ['uid', 'name', 'given_name', 'family_name', 'updates_opt_in'],
});

export const identityMetadataOperations = (operations: Operations): Operations =>
  adapt(operations, Identities.method.updateMetadata, IdentitiesService.method.updateIdentityMetadata, {
    request: ({ onboardingQuestions, updatesOptIn }) => {
      const identityMetadata = answersMapper.toV2(onboardingQuestions) ?? create(IdentityMetadataSchema);
      return { identityMetadata: Object.assign(identityMetadata, { updatesOptIn }) };
    },
    response: (metadata) => {
      const { name, givenName, familyName, updatesOptIn } = metadata;
      return { onboardingQuestions: answersMapper.toV1(metadata), name, givenName, familyName, updatesOptIn };
    },
    v1FieldNames: { identity_metadata: 'onboarding_questions', company: 'company_name' },
    event: (facts) => ({ ...facts, subject: '' }),
  });
