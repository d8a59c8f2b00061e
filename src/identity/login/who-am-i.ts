import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { JWTPayload } from 'jose';
import { decodeJwt } from 'jose/jwt/decode';
import { narrowGrants } from '../../access/token-scope.ts';
import { ROOT, type Uid } from '../../base/uid.ts';
import { capabilitiesIn, capabilityName, capabilitySetOf, NO_CAPABILITIES } from '../../contract/capabilities.ts';
import {
  Auth,
  type WhoAmI_CapabilitySchema,
  WhoAmISchema,
} from '../../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { canHaveRoles, isWithinOwnGroup } from '../../domains/iam/groups/founder.ts';
import { groups } from '../../domains/iam/groups/groups.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { mappedRoles } from '../../domains/iam/identity-providers/external-group-role-mappings.ts';
import { bindingsOf } from '../../domains/iam/roles/role-bindings.ts';
import { roles } from '../../domains/iam/roles/roles.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';
import { find, findMessagesByUid } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { type AccessTokens, bearerToken, type VerifiedAccessToken } from '../tokens/access-tokens.ts';
import type { ProviderMembership } from './login-validity.ts';

/** Describes the caller and its token, which the pipeline has verified. */
export const validateOperation = (accessTokens: Pick<AccessTokens, 'verify'>): Operations =>
  readOperation(Auth.method.validate, async ({ db, caller, authorization }) => {
    const token = bearerToken(authorization);
    const claims = decodeJwt(token);
    const identity = (await find(db, identities, caller.uid))?.message;
    const { iss = '', aud = [], exp, iat } = claims;
    return create(WhoAmISchema, {
      issuer: iss,
      subject: caller.uid,
      audience: [aud].flat(),
      expiry: timestampOf(exp),
      issuedAt: timestampOf(iat),
      email: verifiedEmail(claims) || identity?.email || '',
      profile: profileOf(claims),
      capabilities: await capabilitiesOf(db, caller.uid, (await accessTokens.verify(token)) ?? {}),
    });
  });

/** The last second that a Timestamp can represent. Some issuers issue tokens with a later expiry time. */
const LAST_SECOND = 253_402_300_799;

const timestampOf = (seconds: number | undefined) =>
  seconds === undefined ? undefined : timestampFromMs(Math.min(Math.max(seconds, 0), LAST_SECOND) * 1000);

const stringOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '');

const verifiedEmail = ({ email, email_verified }: JWTPayload): string =>
  email_verified === true ? stringOrEmpty(email) : '';

function profileOf({ name, picture, given_name, family_name }: JWTPayload) {
  const profile = {
    name: stringOrEmpty(name),
    picture: stringOrEmpty(picture),
    givenName: stringOrEmpty(given_name),
    familyName: stringOrEmpty(family_name),
  };
  return Object.values(profile).some((value) => value !== '') ? profile : undefined;
}

type CapabilityEntry = MessageInitShape<typeof WhoAmI_CapabilitySchema>;

/**
 * Returns one entry for each role that the caller has at a group. With a restricted token, a role at an ancestor of its
 * scopes becomes one entry for each scope, and roles that give nothing are omitted.
 */
async function capabilitiesOf(
  db: Reader,
  identity: string,
  accessToken: Partial<VerifiedAccessToken>,
): Promise<CapabilityEntry[]> {
  const assigned = await assignedRoles(db, identity, accessToken.provider);
  const roleByUid = await findMessagesByUid(
    db,
    roles,
    assigned.values().map(({ roleUid }) => roleUid),
  );
  const granted = assigned.flatMap(({ group, roleUid }) => {
    const role = roleByUid.get(roleUid);
    if (!role) return [];
    const grants = narrowGrants([{ group, capabilities: capabilitySetOf(role.capabilities) }], accessToken);
    return grants.map((grant) => ({ ...grant, role }));
  });
  const isUnrestricted = accessToken.scopes === undefined && accessToken.capabilities === undefined;
  const shown = granted
    .filter(({ capabilities }) => isUnrestricted || capabilities !== NO_CAPABILITIES)
    .sort((a, b) => (`${a.group} ${a.role.uid}` < `${b.group} ${b.role.uid}` ? -1 : 1));
  const groupByUid = await findMessagesByUid(
    db,
    groups,
    shown.values().map(({ group }) => group),
  );

  return shown.map(({ group: id, role: { uid, name, description, capabilities: all }, capabilities }) => ({
    group: { id, name: groupByUid.get(id)?.name ?? '', description: groupByUid.get(id)?.description ?? '' },
    role: { id: uid, name, description, capabilities: all.map(capabilityName) },
    capabilities: capabilitiesIn(capabilities).map(capabilityName),
  }));
}

interface AssignedRole {
  readonly group: Uid;
  readonly roleUid: string;
}

/**
 * Returns the roles of an identity by its role bindings and by its groups at an identity provider. An identity that
 * belongs to a group has no roles outside of that group, except in organizations that it has founded.
 */
async function assignedRoles(
  db: Reader,
  identity: string,
  provider: ProviderMembership | undefined,
): Promise<AssignedRole[]> {
  const bound = (await bindingsOf(db, identity)).flatMap(({ parent, message }) =>
    parent === ROOT ? [] : [{ group: parent, roleUid: message.roleUid }],
  );
  const mapped = provider ? await mappedRoles(db, provider.uid, provider.groups) : [];
  const effective: AssignedRole[] = mapped.filter(({ group }) => isWithinOwnGroup(identity, group));
  for (const role of bound) if (await canHaveRoles(db, identity, role.group)) effective.push(role);
  return effective;
}
