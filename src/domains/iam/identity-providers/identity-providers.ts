import { type FieldViolation, invalid } from '../../../base/errors.ts';
import { isPrivateIssuer, issuerProblem, PRIVATE_ISSUER } from '../../../base/issuer-url.ts';
import { parentOf, ROOT, rootOf } from '../../../base/uid.ts';
import {
  IdentityProvider_OIDC_CorrelationRule as CorrelationRule,
  type IdentityProvider,
  type IdentityProvider_OIDC,
  IdentityProviderSchema,
  IdentityProvidersService,
} from '../../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { defineResource, type Resource, type Stored } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operations, WriteContext } from '../../../resource/operation.ts';
import * as rules from '../../../resource/rules.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import type { Transaction } from '../../../store/store.ts';
import { requireAssignable, requireRoleRevocable } from '../roles/roles.ts';
import {
  externalGroupRoleMappings,
  requireMappingsAssignable,
  requireMappingsRevocable,
} from './external-group-role-mappings.ts';
import { newScim, presentScim } from './scim.ts';

/** An OIDC issuer with which the people of an organization log in. */
export const identityProviders = defineResource({
  kind: 'identity provider',
  plural: 'identity providers',
  schema: IdentityProviderSchema,
  parents: ['group'],
  cascade: [externalGroupRoleMappings.kind],
  grantsAccess: 'unless new',
  rules: { name: rules.name({ min: 3, max: 63 }), description: rules.description },
  check: configurationProblems,
  orders: { name: (provider) => provider.name },
  references: {
    role: (provider) => [provider.defaultRole],
    issuer: ({ configuration }) => (configuration.value ? [configuration.value.issuer] : []),
  },
});

export interface IdentityProviderOptions {
  /** Encrypts a secret for a row that `tx` writes. It can be decrypted with the same `context` only. */
  seal(tx: Transaction, secret: string, context: string): Promise<string>;
  /** The URL at which clients reach this server. */
  readonly publicUrl: string;
  /** Whether issuers may be at private addresses. */
  readonly allowPrivateIssuers: boolean;
}

/** The context with which the client secret of an identity provider is encrypted. */
export const clientSecretContext = (uid: string): string => `client secret of identity provider ${uid}`;

export const scimEndpoint = (publicUrl: string, uid: string): string => `${publicUrl}/scim/v2/${uid}`;

export function identityProviderOperations(engine: Engine, options: IdentityProviderOptions): Operations {
  const { seal, publicUrl, allowPrivateIssuers } = options;
  const refusePrivateIssuer = ({ issuer }: IdentityProvider_OIDC): void => {
    if (!allowPrivateIssuers && isPrivateIssuer(issuer)) throw invalid('oidc.issuer', PRIVATE_ISSUER);
  };

  /** Takes the client secret out of the message, so that it is in no row, response or event, and encrypts it. */
  const sealSecret = async (tx: Transaction, oidc: IdentityProvider_OIDC, uid: string): Promise<string | undefined> => {
    const secret = oidc.clientSecret;
    oidc.clientSecret = '';
    return secret === '' ? undefined : seal(tx, secret, clientSecretContext(uid));
  };

  const resource: Resource<typeof IdentityProviderSchema> = {
    ...identityProviders,

    async beforeCreate(ctx, provider, { uid, parent }) {
      if (parent === ROOT || parentOf(parent) !== ROOT) {
        throw invalid('parent', `must be an organization; create the identity provider in ${rootOf(uid)}`);
      }
      refusePrivateIssuer(oidcOf(provider));
      await requireAssignable(ctx, 'default_role', provider.defaultRole, parent);
      provider.scim = newScim();
      return { clientSecret: await sealSecret(ctx.db, oidcOf(provider), uid) };
    },

    async beforeUpdate(ctx, { uid, parent, message, state }, provider, touched) {
      const [before, after] = [oidcOf(message), oidcOf(provider)];
      keepCorrelationRule(before, after);
      if (before.issuer !== after.issuer) refusePrivateIssuer(after);
      await requireRoleRevocable(ctx, message.defaultRole, parent);
      await requireAssignable(ctx, 'default_role', provider.defaultRole, parent);
      if (acceptsOtherTokens(before, after)) await requireMappingsAssignable(ctx, uid);
      const newSecret = await sealSecret(ctx.db, after, uid);
      // The server sends the secret to the issuer, so a secret must not survive a change of the issuer.
      const dropsSecret = touched.has('oidc.client_secret') || before.issuer !== after.issuer;
      return { ...state, clientSecret: newSecret ?? (dropsSecret ? undefined : state?.clientSecret) };
    },

    beforeDelete: requireProviderRevocable,

    present({ now }, providers) {
      for (const { uid, scim } of providers) if (scim) presentScim(scim, scimEndpoint(publicUrl, uid), now);
    },
  };
  return standardOperations(engine, resource, IdentityProvidersService);
}

/** Refuses a caller that could not revoke all roles that the provider gives. */
export async function requireProviderRevocable(
  ctx: WriteContext,
  { uid, parent, message }: Stored<IdentityProvider>,
): Promise<void> {
  await requireRoleRevocable(ctx, message.defaultRole, parent);
  await requireMappingsRevocable(ctx, uid);
}

/** Whether the update makes the mappings apply to tokens of other people, or to other groups in the tokens. */
const acceptsOtherTokens = (before: IdentityProvider_OIDC, after: IdentityProvider_OIDC): boolean =>
  before.issuer !== after.issuer || before.clientId !== after.clientId || before.groupsClaim !== after.groupsClaim;

/** Keeps the rule when the mask names all of `oidc` and the request leaves the rule out. Refuses to change it. */
function keepCorrelationRule(before: IdentityProvider_OIDC, after: IdentityProvider_OIDC): void {
  if (after.correlationRule === CorrelationRule.UNSPECIFIED) after.correlationRule = before.correlationRule;
  if (after.correlationRule !== before.correlationRule) {
    throw invalid('oidc.correlation_rule', 'cannot be changed after creation');
  }
}

function oidcOf({ configuration }: IdentityProvider): IdentityProvider_OIDC {
  if (configuration.case !== 'oidc') throw invalid('oidc', 'is required');
  return configuration.value;
}

const TEXT = /^\P{Cc}{0,255}$/u;
/** RFC 6749, section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/;
const MAX_SCOPES = 50;
const MAX_SECRET = 4096;

function configurationProblems({ configuration: { value: oidc } }: IdentityProvider): FieldViolation[] {
  if (!oidc) return [{ field: 'oidc', description: 'is required' }];
  const found: FieldViolation[] = [];
  const expect = (field: string, isValid: boolean, description: string) => {
    if (!isValid) found.push({ field: `oidc.${field}`, description });
  };
  const textRule = 'must have at most 255 characters, none of them a control character';
  const problem = oidc.issuer === '' ? undefined : issuerProblem(oidc.issuer);
  if (problem) expect('issuer', false, problem);
  expect('client_id', TEXT.test(oidc.clientId), textRule);
  expect('client_secret', oidc.clientSecret.length <= MAX_SECRET, `must have at most ${MAX_SECRET} characters`);
  expect('groups_claim', TEXT.test(oidc.groupsClaim), textRule);
  expect('correlation_rule', oidc.correlationRule in CorrelationRule, 'must be a known correlation rule');
  expect('additional_scopes', oidc.additionalScopes.length <= MAX_SCOPES, `must be at most ${MAX_SCOPES}`);
  for (const [at, scope] of oidc.additionalScopes.entries()) {
    expect(`additional_scopes[${at}]`, SCOPE.test(scope), 'must be an OAuth scope: visible ASCII without " and \\');
  }
  return found;
}
