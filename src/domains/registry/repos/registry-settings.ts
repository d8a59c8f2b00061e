import { notFound } from '../../../base/errors.ts';
import type { Group } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import type { ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { update } from '../../../resource/write.ts';
import { groups } from '../../iam/groups/groups.ts';

/** The registry settings of a group. The server only stores them: it pushes no tags and expires none by itself. */
export interface RegistrySettings {
  readonly uniqueTags: boolean;
  readonly eolGracePeriod: boolean;
}

const DEFAULTS: RegistrySettings = { uniqueTags: false, eolGracePeriod: false };

const settingsOf = ({ state }: Stored<Group>): RegistrySettings => ({
  ...DEFAULTS,
  ...(state?.registry as object | undefined),
});

export async function getRegistrySettings({ db }: ReadContext, group: string): Promise<RegistrySettings> {
  const stored = await find(db, groups, group);
  if (!stored) throw notFound(groups.kind, group);
  return settingsOf(stored);
}

export async function putRegistrySettings(
  { db, now }: WriteContext,
  group: string,
  { uniqueTags, eolGracePeriod }: RegistrySettings,
): Promise<void> {
  const stored = await find(db.forUpdate, groups, group);
  if (!stored) throw notFound(groups.kind, group);
  const state = { ...stored.state, registry: { uniqueTags, eolGracePeriod } };
  await update(db, groups, stored, { message: stored.message, state }, now);
}
