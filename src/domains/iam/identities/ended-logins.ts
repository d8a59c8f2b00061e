import { randomBytes } from 'node:crypto';
import type { State } from '../../../resource/definition.ts';

/** The last time that all logins of an identity were ended. Part of its private state. */
export interface EndedLogins {
  /** In milliseconds. */
  readonly time: number;
  /** A random text that the credential fingerprint of later logins includes. So all earlier ones are invalid. */
  readonly epoch: string;
}

const KEY = 'endedLogins';

/** Returns undefined when they were never ended. */
export const endedLoginsOf = (state: State | undefined): EndedLogins | undefined =>
  state?.[KEY] as EndedLogins | undefined;

/** The state of an identity after all its logins are ended. */
export const endLogins = (state: State | undefined, now: number): State => {
  const ended: EndedLogins = { time: now, epoch: randomBytes(8).toString('base64url') };
  return { ...state, [KEY]: ended };
};
