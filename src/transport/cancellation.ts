import { clientGone } from './request-id.ts';

/** Tells a call that its client went away. */
export interface Cancellation {
  signal(): AbortSignal;
  cancel(): void;
}

/** The signal is made when somebody looks at it: most calls are answered before anybody does. */
export function createCancellation(): Cancellation {
  let controller: AbortController | undefined;
  let isCancelled = false;
  return {
    signal() {
      controller ??= new AbortController();
      if (isCancelled) controller.abort(clientGone);
      return controller.signal;
    },
    cancel() {
      isCancelled = true;
      controller?.abort(clientGone);
    },
  };
}
