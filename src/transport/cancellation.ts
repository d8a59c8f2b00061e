import { clientGone } from './request-id.ts';

/** Says that the client has left; its signal is made for those who ask, which for quick answers is nobody. */
export interface Cancellation {
  readonly signal: AbortSignal;
  cancel(): void;
}

export function newCancellation(): Cancellation {
  let controller: AbortController | undefined;
  let isCancelled = false;
  return {
    get signal() {
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
