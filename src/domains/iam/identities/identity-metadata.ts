import { clone, fromJson, type JsonObject, ScalarType, toJson } from '@bufbuild/protobuf';
import { notFound } from '../../../base/errors.ts';
import {
  IdentitiesService,
  type Identity,
  type IdentityMetadata,
  IdentityMetadataSchema,
  IdentitySchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { Rule, Stored } from '../../../resource/definition.ts';
import { writeOperation } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { applyMask } from '../../../resource/update-mask.ts';
import { refuse, validate } from '../../../resource/validate.ts';
import { update } from '../../../resource/write.ts';
import { identities } from './identities.ts';

const URL_FIELDS: readonly string[] = ['latest_form_submit_url', 'latest_internal_referring_url'];

/** Text fields take one line. `company` has the same limit as the field of the identity. */
const RULES: Readonly<Record<string, Rule<never>>> = {
  ...Object.fromEntries(
    IdentityMetadataSchema.fields
      .filter(({ scalar }) => scalar === ScalarType.STRING)
      .map(({ name }) => [name, rules.line(URL_FIELDS.includes(name) ? 2048 : 512)]),
  ),
  company: rules.line(255),
};

/** Updates the metadata of the caller's own identity. */
export const identityMetadataOperations = writeOperation(IdentitiesService.method.updateIdentityMetadata, {
  async run({ db, caller, now }, { identityMetadata, updateMask }) {
    const before = await find(db.forUpdate, identities, caller.uid);
    if (!before || !identityMetadata) throw notFound(identities.kind, caller.uid);
    const metadata = metadataOf(before);
    const source = clone(IdentityMetadataSchema, identityMetadata);
    const touched = applyMask(IdentityMetadataSchema, metadata, source, updateMask?.paths);
    refuse(
      validate(IdentityMetadataSchema, metadata, RULES, touched).map(({ field, description }) => ({
        field: `identity_metadata.${field}`,
        description,
      })),
    );
    const message = clone(IdentitySchema, before.message);
    message.company = metadata.company;
    const state = { ...before.state, metadata: toJson(IdentityMetadataSchema, metadata) };
    await update(db, identities, before, { message, state }, now);
    return metadata;
  },
  event: ({ caller }, _request, message) => ({
    subject: caller.uid,
    extensions: {},
    body: { schema: IdentityMetadataSchema, message },
  }),
});

/** The stored metadata. Fields that the identity has too are taken from the identity. */
function metadataOf({ uid, message: { name, company }, state }: Stored<Identity>): IdentityMetadata {
  const json = (state?.metadata ?? {}) as JsonObject;
  const metadata = fromJson(IdentityMetadataSchema, json, { ignoreUnknownFields: true });
  return Object.assign(metadata, { uid, name, company });
}
