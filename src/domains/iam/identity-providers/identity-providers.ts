import { type FieldViolation, invalid } from '../../../base/errors.ts';
import { issuerProblem } from '../../../base/issuer-url.ts';
import {
  IdentityProvider_OIDC_CorrelationRule as CorrelationRule,
  type IdentityProvider,
  type IdentityProvider_OIDC,
  IdentityProviderSchema,
  IdentityProvidersService,
} from '../../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { defineResource, type Resource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operations } from '../../../resource/operation.ts';
import * as rules from '../../../resource/rules.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import { requireAssignable } from '../roles/roles.ts';
import { externalGroupRoleMappings, requireAllAssignable } from './external-group-role-mappings.ts';
import { newScim, presentScim } from './scim.ts';

/** An OIDC issuer through which the people of an organization log in. */
export const identityProviders = defineResource({
  kind: 'identity provider',
  plural: 'identity providers',
  schema: IdentityProviderSchema,
  parents: ['group'],
  cascade: [externalGroupRoleMappings.kind],
  grantsAccess: 'unless new',
  rules: { name: rules.name({ min: 3, max: 63 }), description: rules.description },
  check: problemsOf,
  orders: { name: (provider) => provider.name },
  references: {
    role: (provider) => [provider.defaultRole],
    issuer: ({ configuration }) => (configuration.value ? [configuration.value.issuer] : []),
  },
});

export interface IdentityProviderOptions {
  /** Encrypts a secret, so that the database alone does not give it away. It opens in the same context only. */
  seal(secret: string, context: string): string;
  /** Where clients reach this server. */
  publicUrl(): string;
}

/** What the sealed secret of an identity provider is bound to. */
export const secretContext = (uid: string): string => `client secret of identity provider ${uid}`;

export const scimEndpoint = (publicUrl: () => string, uid: string): string => `${publicUrl()}/scim/v2/${uid}`;

export function identityProviderOperations(engine: Engine, { seal, publicUrl }: IdentityProviderOptions): Operations {
  /** The secret leaves the message before anything is stored, answered or sent as an event. */
  const sealSecret = (oidc: IdentityProvider_OIDC, uid: string): string | undefined => {
    const secret = oidc.clientSecret;
    oidc.clientSecret = '';
    return secret === '' ? undefined : seal(secret, secretContext(uid));
  };

  const resource: Resource<typeof IdentityProviderSchema> = {
    ...identityProviders,

    async beforeCreate(ctx, provider, { uid, parent }) {
      await requireAssignable(ctx, 'default_role', provider.defaultRole, parent);
      provider.scim = newScim();
      return { clientSecret: sealSecret(oidcOf(provider), uid) };
    },

    async beforeUpdate(ctx, { uid, parent, message, state }, provider, touched) {
      const [before, after] = [oidcOf(message as IdentityProvider), oidcOf(provider)];
      keepCorrelationRule(before, after);
      await requireAssignable(ctx, 'default_role', provider.defaultRole, parent);
      if (speaksForOthers(before, after)) await requireAllAssignable(ctx, uid);
      const given = sealSecret(after, uid);
      // A secret is for the issuer that gave it: it is never sent to another, which a mere update could name.
      const forget = touched.has('oidc.client_secret') || before.issuer !== after.issuer;
      return { ...state, clientSecret: given ?? (forget ? undefined : state?.clientSecret) };
    },

    present({ now }, providers) {
      for (const { uid, scim } of providers) if (scim) presentScim(scim, scimEndpoint(publicUrl, uid), now);
    },
  };
  return standardOperations(engine, resource, IdentityProvidersService);
}

/** Whether tokens of other people, or other groups in them, would count from now on. */
const speaksForOthers = (before: IdentityProvider_OIDC, after: IdentityProvider_OIDC): boolean =>
  before.issuer !== after.issuer || before.clientId !== after.clientId || before.groupsClaim !== after.groupsClaim;

/** A mask that names all of `oidc` replaces what may never change too; left out there, it stays. */
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

function problemsOf({ configuration: { value: oidc } }: IdentityProvider): FieldViolation[] {
  if (!oidc) return [{ field: 'oidc', description: 'is required' }];
  const found: FieldViolation[] = [];
  const expect = (field: string, right: boolean, description: string) => {
    if (!right) found.push({ field: `oidc.${field}`, description });
  };
  const text = 'must have at most 255 characters, none of them a control character';
  const issuer = oidc.issuer === '' ? undefined : issuerProblem(oidc.issuer);
  if (issuer) expect('issuer', false, issuer);
  expect('client_id', TEXT.test(oidc.clientId), text);
  expect('client_secret', oidc.clientSecret.length <= MAX_SECRET, `must have at most ${MAX_SECRET} characters`);
  expect('groups_claim', TEXT.test(oidc.groupsClaim), text);
  expect('correlation_rule', oidc.correlationRule in CorrelationRule, 'must be one of the rules that there are');
  expect('additional_scopes', oidc.additionalScopes.length <= MAX_SCOPES, `must be at most ${MAX_SCOPES}`);
  for (const [at, scope] of oidc.additionalScopes.entries()) {
    expect(`additional_scopes[${at}]`, SCOPE.test(scope), 'must be a scope of OAuth: visible ASCII without " and \\');
  }
  return found;
}
