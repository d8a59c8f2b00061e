import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { JWTPayload } from 'jose';
import { decodeJwt } from 'jose/jwt/decode';
import { narrowGrants } from '../../access/token-scope.ts';
import { isWithin, parentOf, ROOT } from '../../base/uid.ts';
import { listOf, NO_CAPABILITIES, nameOf, setOf } from '../../contract/capabilities.ts';
import type { Group } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Identity } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { RoleBinding } from '../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import type { Role } from '../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { type WhoAmI_CapabilitySchema, WhoAmISchema } from '../../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { groups } from '../../domains/iam/groups/groups.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { mappedGrants } from '../../domains/iam/identity-providers/external-group-role-mappings.ts';
import { bindingsOf } from '../../domains/iam/roles/role-bindings.ts';
import { roles } from '../../domains/iam/roles/roles.ts';
import type { Resource } from '../../resource/definition.ts';
import type { Operation } from '../../resource/operation.ts';
import { find, findAll } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { bearerToken, type OwnToken, type Tokens } from '../tokens/access-tokens.ts';
import type { Provider } from './login-validity.ts';

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
        expiry: timeOf(exp),
        issuedAt: timeOf(iat),
        email: verifiedEmail(claims) || identity?.email || '',
        profile: profileOf(claims),
        capabilities: await capabilitiesOf(db, caller.uid, (await tokens.verify(token)) ?? {}),
      });
    },
  };
}

/** The last second that a timestamp can be: some issuers make tokens that never end. */
const LAST_SECOND = 253_402_300_799;

const timeOf = (seconds: number | undefined) =>
  seconds === undefined ? undefined : timestampFromMs(Math.min(Math.max(seconds, 0), LAST_SECOND) * 1000);

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

/** One entry for each role that the caller has on a group; under a token that is narrow, as many as it holds in. */
async function capabilitiesOf(db: Reader, identity: string, own: Partial<OwnToken>): Promise<Entry[]> {
  const given = await rolesOf(db, identity, own.provider);
  const roleOf = await lookUp<Role>(
    db,
    roles,
    given.values().map(({ roleUid }) => roleUid),
  );
  const held = given.flatMap(({ group, roleUid }) => {
    const role = roleOf.get(roleUid);
    if (!role) return [];
    const grants = narrowGrants([{ group, capabilities: setOf(role.capabilities) }], own);
    return grants.map((grant) => ({ ...grant, role }));
  });
  const isWhole = own.scopes === undefined && own.capabilities === undefined;
  const kept = held
    .filter(({ capabilities }) => isWhole || capabilities !== NO_CAPABILITIES)
    .sort((a, b) => (`${a.group} ${a.role.uid}` < `${b.group} ${b.role.uid}` ? -1 : 1));
  const groupOf = await lookUp<Group>(
    db,
    groups,
    kept.values().map(({ group }) => group),
  );

  return kept.map(({ group: id, role: { uid, name, description, capabilities: all }, capabilities }) => ({
    group: { id, name: groupOf.get(id)?.name ?? '', description: groupOf.get(id)?.description ?? '' },
    role: { id: uid, name, description, capabilities: all.map(nameOf) },
    capabilities: listOf(capabilities).map(nameOf),
  }));
}

interface Given {
  readonly group: string;
  readonly roleUid: string;
}

/** By bindings, and by the groups that an identity provider told. An identity inside a group never reaches out of it. */
async function rolesOf(db: Reader, identity: string, provider: Provider | undefined): Promise<Given[]> {
  const bound = (await bindingsOf(db, identity)).map(({ parent, message }) => ({
    group: parent,
    roleUid: (message as RoleBinding).roleUid,
  }));
  const mapped = provider ? await mappedGrants(db, provider.uid, provider.groups) : [];
  const home = parentOf(identity);
  return [...bound, ...mapped].filter(({ group }) => home === ROOT || isWithin(group, home));
}

async function lookUp<M>(db: Reader, resource: Resource, uids: Iterable<string>): Promise<ReadonlyMap<string, M>> {
  const found = await findAll(db, resource, [...new Set(uids)]);
  return new Map(found.map(({ uid, message }) => [uid, message as M]));
}
