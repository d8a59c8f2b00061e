import { ApiError, Code } from '../base/errors.ts';

/** The abort reason of a call whose client has disconnected. */
export const clientDisconnected = new ApiError(Code.CANCELLED, 'Cancelled: the client disconnected');

/** Aborts a call whose client has disconnected. */
export interface Cancellation {
  signal(): AbortSignal;
  cancel(): void;
}

/** The AbortController is created on the first call of `signal`, because most calls finish without one. */
export function createCancellation(): Cancellation {
  let controller: AbortController | undefined;
  let isCancelled = false;
  return {
    signal() {
      controller ??= new AbortController();
      if (isCancelled) controller.abort(clientDisconnected);
      return controller.signal;
    },
    cancel() {
      isCancelled = true;
      controller?.abort(clientDisconnected);
    },
  };
}
