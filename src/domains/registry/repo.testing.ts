import { create } from '@bufbuild/protobuf';
import { newUid, ROOT } from '../../base/uid.ts';
import { GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RepoSchema } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { insert } from '../../resource/write.ts';
import type { Store } from '../../store/store.ts';
import { groups } from '../iam/groups/groups.ts';
import { repos } from './repos/repos.ts';

/** Groups with these names, each in the one before, and the uid of the last. For tests. */
export async function groupAt(store: Store, ...names: string[]): Promise<string> {
  let parent = ROOT;
  for (const name of names) {
    const place = { uid: newUid(parent), parent };
    await store.write((tx) => insert(tx, groups, { message: create(GroupSchema, { name }), ...place }, 0));
    parent = place.uid;
  }
  return parent;
}

let count = 0;

/** A new repo and its uid. For tests. */
export async function repoIn(store: Store, group: string, name = `repo-${++count}`): Promise<string> {
  const place = { uid: newUid(group), parent: group };
  await store.write((tx) => insert(tx, repos, { message: create(RepoSchema, { name }), ...place }, 0));
  return place.uid;
}
