import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type SyncConfig, SyncConfigSchema } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { WriteContext } from '../../../resource/operation.ts';
import * as rules from '../../../resource/rules.ts';
import { clearOutputOnly, refuse, validate } from '../../../resource/validate.ts';

/** A write that also sets the fields of `sync_config` that clients of v2 can only read. */
export interface SyncSettingsContext extends WriteContext {
  readonly syncSettings: SyncConfig | undefined;
}

const DEFAULT_LIFETIME_MS = 14 * 24 * 60 * 60 * 1000;
const overlayRule = rules.text(64 * 1024);

/**
 * Sets the output-only fields of a new or changed configuration: those of v1 as the request has them, and otherwise
 * those of `before`. A configuration without an expiration time gets one.
 */
export function applySyncSettings(ctx: WriteContext, syncConfig: SyncConfig, before: SyncConfig | undefined): void {
  const requested = (ctx as Partial<SyncSettingsContext>).syncSettings;
  if (requested) refuseInvalid(requested);
  clearOutputOnly(SyncConfigSchema, syncConfig);
  const settings = requested ?? before;
  if (settings) copySettings(settings, syncConfig);
  const isNew = requested !== undefined || before === undefined;
  if (isNew) syncConfig.expirationTime ??= timestampFromMs(ctx.now + DEFAULT_LIFETIME_MS);
}

function copySettings({ uniqueTags, gracePeriod, apkoOverlay, syncApks, expirationTime }: SyncConfig, to: SyncConfig) {
  Object.assign(to, { uniqueTags, gracePeriod, apkoOverlay });
  if (syncApks) to.syncApks = true;
  if (expirationTime) to.expirationTime = expirationTime;
}

function refuseInvalid(settings: SyncConfig): void {
  const field = (name: string): string => `sync_config.${name}`;
  const description = overlayRule(settings.apkoOverlay);
  refuse([
    ...validate(SyncConfigSchema, settings).map((problem) => ({ ...problem, field: field(problem.field) })),
    ...(description ? [{ field: field('apko_overlay'), description }] : []),
  ]);
}
