import type { State, Stored } from '../../resource/definition.ts';

/** When and by which identity an identity or an identity provider was disabled. Part of its private state. */
export interface Disabled {
  /** In milliseconds. */
  readonly time: number;
  readonly by: string;
}

const KEY = 'disabled';

/** Returns undefined for a resource that is not disabled. */
export const disabledOf = (state: State | undefined): Disabled | undefined => state?.[KEY] as Disabled | undefined;

/** Whether a resource exists and is not disabled. */
export const isEnabled = (stored: Pick<Stored, 'state'> | undefined): boolean =>
  stored !== undefined && disabledOf(stored.state) === undefined;

/** The state of a resource after it is disabled. It stays as it is when the resource is disabled already. */
export const disable = (state: State | undefined, disabled: Disabled): State => ({ [KEY]: disabled, ...state });

/** The state of a resource after it is enabled. */
export function enable(state: State | undefined): State {
  const { [KEY]: _disabled, ...rest } = state ?? {};
  return rest;
}
