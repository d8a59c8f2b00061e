import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { decodeJwt, type JWTPayload } from 'jose';
import { type Narrowing, narrow } from '../access/narrow.ts';
import { isWithin, parentOf, ROOT } from '../base/uid.ts';
import { type CapabilitySet, listOf, NO_CAPABILITIES, nameOf, setOf } from '../contract/capabilities.ts';
import type { Group } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Identity } from '../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { RoleBinding } from '../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import type { Role } from '../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { type WhoAmI_CapabilitySchema, WhoAmISchema } from '../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { groups } from '../domains/iam/groups.ts';
import { identities } from '../domains/iam/identities.ts';
import { bindingsOf } from '../domains/iam/role-bindings.ts';
import { roles } from '../domains/iam/roles.ts';
import type { Operation } from '../resource/context.ts';
import type { Resource, Stored } from '../resource/definition.ts';
import { find, findAll } from '../resource/read.ts';
import type { Reader } from '../store/store.ts';
import { bearerToken, type Tokens } from './tokens.ts';

/** Explains the caller's token. The pipeline has verified it by now. */
export function whoAmI(tokens: Pick<Tokens, 'verify'>): Operation {
  return {
    mode: 'read',
    async run({ db, caller, authorization }) {
      const token = bearerToken(authorization);
      const claims = decodeJwt(token);
      const identity = (await find(db, identities, caller.uid))?.message as Identity | undefined;
      const { iss = '', aud = [], exp, iat } = claims;
      return create(WhoAmISchema, {
        issuer: iss,
        subject: caller.uid,
        audience: [aud].flat(),
        ...(exp !== undefined && { expiry: timestampFromMs(exp * 1000) }),
        ...(iat !== undefined && { issuedAt: timestampFromMs(iat * 1000) }),
        email: verifiedEmail(claims) || identity?.email || '',
        profile: profileOf(claims),
        capabilities: await capabilitiesOf(db, caller.uid, (await tokens.verify(token)) ?? {}),
      });
    },
  };
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const verifiedEmail = ({ email, email_verified }: JWTPayload): string => (email_verified === true ? text(email) : '');

function profileOf({ name, picture, given_name, family_name }: JWTPayload) {
  const profile = {
    name: text(name),
    picture: text(picture),
    givenName: text(given_name),
    familyName: text(family_name),
  };
  return Object.values(profile).some((value) => value !== '') ? profile : undefined;
}

type Entry = MessageInitShape<typeof WhoAmI_CapabilitySchema>;

/** One entry for each binding; under a token that is narrow, as many as it holds in. */
async function capabilitiesOf(db: Reader, identity: string, narrowing: Narrowing): Promise<Entry[]> {
  const home = parentOf(identity);
  // As for every call: an identity inside a group never reaches out of it.
  const bindings = (await bindingsOf(db, identity)).filter(({ parent }) => home === ROOT || isWithin(parent, home));
  const roleOf = await lookUp(
    db,
    roles,
    bindings.map(({ message }) => (message as RoleBinding).roleUid),
  );

  const held = bindings.flatMap(({ parent, message }) => {
    const role = roleOf.get((message as RoleBinding).roleUid)?.message as Role | undefined;
    if (!role) return [];
    const grants = narrow([{ group: parent, capabilities: setOf(role.capabilities) }], narrowing);
    return grants.map((grant) => ({ ...grant, role }));
  });
  const isWhole = narrowing.scopes === undefined && narrowing.capabilities === undefined;
  const kept = held
    .filter(({ capabilities }) => isWhole || capabilities !== NO_CAPABILITIES)
    .sort((a, b) => (`${a.group} ${a.role.uid}` < `${b.group} ${b.role.uid}` ? -1 : 1));
  const groupOf = await lookUp(
    db,
    groups,
    kept.map(({ group }) => group),
  );

  return kept.map(({ group: id, role, capabilities }) => {
    const group = groupOf.get(id)?.message as Group | undefined;
    return {
      group: { id, name: group?.name ?? '', description: group?.description ?? '' },
      role: {
        id: role.uid,
        name: role.name,
        description: role.description,
        capabilities: role.capabilities.map(nameOf),
      },
      capabilities: dotted(capabilities),
    };
  });
}

const dotted = (set: CapabilitySet): string[] => listOf(set).map(nameOf);

async function lookUp(db: Reader, resource: Resource, uids: readonly string[]): Promise<ReadonlyMap<string, Stored>> {
  const found = await findAll(db, resource, [...new Set(uids)]);
  return new Map(found.map((stored) => [stored.uid, stored]));
}
