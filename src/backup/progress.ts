/** Receives what a long command is doing. */
export interface Progress {
  /** Reports how much of `what` is done, such as bytes. Called often. */
  update(what: string, done: number, total: number): void;
  /** Reports something once. */
  say(message: string): void;
}
