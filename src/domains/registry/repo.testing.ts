import { create } from '@bufbuild/protobuf';
import { newUid, ROOT } from '../../base/uid.ts';
import { GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RepoSchema } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { insert } from '../../resource/write.ts';
import type { Store } from '../../store/store.ts';
import { groups } from '../iam/groups/groups.ts';
import { repos } from './repos/repos.ts';

/** Creates groups with these names, each inside the previous one. Returns the uid of the last. */
export async function createGroups(store: Store, ...names: string[]): Promise<string> {
  let parent = ROOT;
  for (const name of names) {
    const uid = newUid(parent);
    const draft = { message: create(GroupSchema, { name }), uid, parent };
    await store.write((tx) => insert(tx, groups, draft, 0));
    parent = uid;
  }
  return parent;
}

let count = 0;

/** Creates a repo and returns its uid. */
export async function createRepo(store: Store, group: string, name = `repo-${++count}`): Promise<string> {
  const uid = newUid(group);
  const draft = { message: create(RepoSchema, { name }), uid, parent: group };
  await store.write((tx) => insert(tx, repos, draft, 0));
  return uid;
}
