import { GroupsService } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Operations } from '../resource/context.ts';
import type { Resource } from '../resource/definition.ts';
import type { PageTokens } from '../resource/list/page-token.ts';
import { type Engine, standardOperations } from '../resource/operations.ts';
import { groups } from './iam/groups.ts';
import { identities } from './iam/identities.ts';
import { roleBindings } from './iam/role-bindings.ts';
import { roles } from './iam/roles.ts';
import { pingOperations } from './ping/ping.ts';

/** Every kind of resource there is. */
export const resources: readonly Resource[] = [groups, identities, roles, roleBindings];

/** Every method that this server can do. The contract's other methods answer UNIMPLEMENTED. */
export function createOperations(tokens: PageTokens): Operations {
  const engine: Engine = { kinds: new Map(resources.map((resource) => [resource.kind, resource])), tokens };
  return { ...pingOperations, ...standardOperations(engine, groups, GroupsService) };
}
