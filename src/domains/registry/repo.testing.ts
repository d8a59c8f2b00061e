import { create } from '@bufbuild/protobuf';
import { newUid, type ParentUid, ROOT, type Uid } from '../../base/uid.ts';
import { GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RepoSchema } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { insert } from '../../resource/write.ts';
import type { Store } from '../../store/store.ts';
import { groups } from '../iam/groups/groups.ts';
import { repos } from './repos/repos.ts';

/** Creates groups with these names, each inside the previous one. Returns the uid of the last. */
export async function createGroups(store: Store, first: string, ...names: string[]): Promise<Uid> {
  let group = await createGroup(store, ROOT, first);
  for (const name of names) group = await createGroup(store, group, name);
  return group;
}

async function createGroup(store: Store, parent: ParentUid, name: string): Promise<Uid> {
  const uid = newUid(parent);
  const draft = { message: create(GroupSchema, { name }), uid, parent };
  await store.write((tx) => insert(tx, groups, draft, 0));
  return uid;
}

let count = 0;

/** Creates a repo and returns its uid. */
export async function createRepo(store: Store, group: Uid, name = `repo-${++count}`): Promise<Uid> {
  const uid = newUid(group);
  const draft = { message: create(RepoSchema, { name }), uid, parent: group };
  await store.write((tx) => insert(tx, repos, draft, 0));
  return uid;
}
