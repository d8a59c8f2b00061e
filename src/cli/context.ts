import type { Terminal } from './output/terminal.ts';
import type { Output } from './settings/config-file.ts';

/** The server that a command calls. */
export interface Connection {
  /** The origin, without a slash at the end. */
  readonly server: string;
  /** A certificate (PEM) to trust in addition to those of the system. */
  readonly ca: string | undefined;
}

/** The settings that all client commands share. */
export interface ClientContext extends Connection {
  readonly output: Output;
  readonly terminal: Terminal;
  /** Returns the data directory of the server on this machine. */
  data(): Promise<string>;
  /** Returns the given token, else that of the saved login, else a new one for the owner of the data directory. */
  token(): Promise<string>;
}
