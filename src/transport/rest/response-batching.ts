/**
 * Sends the responses of one turn of the event loop together, at its end. A client on the same machine, such as a
 * proxy, is then woken once for all of them: with 32 connections, lists took half of the CPU time.
 */
export function createResponseBatch(): (send: () => void) => void {
  let waiting: (() => void)[] = [];
  const sendAll = (): void => {
    const all = waiting;
    waiting = [];
    for (const send of all) send();
  };
  return (send) => {
    if (waiting.push(send) === 1) setImmediate(sendAll);
  };
}
