import { notFound } from '../../../base/errors.ts';
import type { Stored } from '../../../resource/definition.ts';
import type { ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { update } from '../../../resource/write.ts';
import { groups } from '../../iam/groups/groups.ts';

/** What a group wants of its registry. Kept for clients that set it; this server pushes and expires nothing by itself. */
export interface RegistrySettings {
  readonly uniqueTags: boolean;
  readonly eolGracePeriod: boolean;
}

const NONE: RegistrySettings = { uniqueTags: false, eolGracePeriod: false };

const settingsIn = ({ state }: Stored): RegistrySettings => ({ ...NONE, ...(state?.registry as object | undefined) });

export async function getSettings({ db }: ReadContext, group: string): Promise<RegistrySettings> {
  const stored = await find(db, groups, group);
  if (!stored) throw notFound(groups.kind, group);
  return settingsIn(stored);
}

export async function putSettings({ db, now }: WriteContext, group: string, wanted: RegistrySettings): Promise<void> {
  const stored = await find(db.forUpdate, groups, group);
  if (!stored) throw notFound(groups.kind, group);
  const { uniqueTags, eolGracePeriod } = wanted;
  const state = { ...stored.state, registry: { uniqueTags, eolGracePeriod } };
  await update(db, groups, stored, { message: stored.message, state }, now);
}
