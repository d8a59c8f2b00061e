import { clone, fromJson, type JsonObject, ScalarType, toJson } from '@bufbuild/protobuf';
import { notFound } from '../../../base/errors.ts';
import {
  IdentitiesService,
  type Identity,
  type IdentityMetadata,
  IdentityMetadataSchema,
  IdentitySchema,
  type UpdateIdentityMetadataRequest,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { Rule, Stored } from '../../../resource/definition.ts';
import type { Operation, Operations } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { applyMask } from '../../../resource/update-mask.ts';
import { refuse, validate } from '../../../resource/validate.ts';
import { update } from '../../../resource/write.ts';
import { identities } from './identities.ts';

const URLS: readonly string[] = ['latest_form_submit_url', 'latest_internal_referring_url'];

/** Any text on one line; `company` no longer than the identity itself takes it. */
const RULES: Readonly<Record<string, Rule<never>>> = {
  ...Object.fromEntries(
    IdentityMetadataSchema.fields
      .filter(({ scalar }) => scalar === ScalarType.STRING)
      .map(({ name }) => [name, rules.line(URLS.includes(name) ? 2048 : 512)]),
  ),
  company: rules.line(255),
};

const updateOwn: Operation = {
  mode: 'write',
  async run({ db, caller, now }, request) {
    const { identityMetadata, updateMask } = request as UpdateIdentityMetadataRequest;
    const before = await find(db.forUpdate, identities, caller.uid);
    if (!before || !identityMetadata) throw notFound(identities.kind, caller.uid);
    const metadata = metadataOf(before);
    const told = clone(IdentityMetadataSchema, identityMetadata);
    const touched = applyMask(IdentityMetadataSchema, metadata, told, updateMask?.paths);
    refuse(
      validate(IdentityMetadataSchema, metadata, RULES, touched).map(({ field, description }) => ({
        field: `identity_metadata.${field}`,
        description,
      })),
    );
    const message = clone(IdentitySchema, before.message as Identity);
    message.company = metadata.company;
    const state = { ...before.state, metadata: toJson(IdentityMetadataSchema, metadata) };
    await update(db, identities, before, { message, state }, now);
    return metadata;
  },
  event({ caller }, _request, message) {
    return { subject: caller.uid, extensions: {}, body: { schema: IdentityMetadataSchema, message } };
  },
};

export const identityMetadataOperations: Operations = {
  [`${IdentitiesService.typeName}/${IdentitiesService.method.updateIdentityMetadata.name}`]: updateOwn,
};

/** What the person has told so far. What the identity shows itself is there only. */
function metadataOf({ uid, message, state }: Stored): IdentityMetadata {
  const told = (state?.metadata ?? {}) as JsonObject;
  const metadata = fromJson(IdentityMetadataSchema, told, { ignoreUnknownFields: true });
  const { name, company } = message as Identity;
  return Object.assign(metadata, { uid, name, company });
}
