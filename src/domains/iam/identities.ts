import { ROOT } from '../../base/uid.ts';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { defineResource } from '../../resource/definition.ts';
import * as rules from '../../resource/rules.ts';

/** How an identity is found by the issuer and subject of a token. */
export const subjectKey = (issuer: string, subject: string): string => `${issuer} ${subject}`;

/** A person or a machine that calls the API. Under a group it is confined to that group; people stand at the root. */
export const identities = defineResource({
  kind: 'identity',
  plural: 'identities',
  schema: IdentitySchema,
  parents: ['group', ROOT],
  rules: { name: rules.name(), description: rules.description },
  orders: { name: (identity) => identity.name },
  references: {
    subject: ({ relationship }) =>
      relationship.case === 'staticKeys' ? [subjectKey(relationship.value.issuer, relationship.value.subject)] : [],
  },
});
