import { OutgoingError, permittedUrl } from '../identity/outgoing/permitted-url.ts';

const MAX_LENGTH = 2048;

/** Returns why a URL cannot be a sink, or undefined. The address of a host name is checked when it is resolved. */
export function sinkProblem(sink: string, allowInsecure: boolean): string | undefined {
  if (sink.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  try {
    const { hash } = permittedUrl(sink, allowInsecure);
    return hash === '' ? undefined : 'must have no fragment, because it would not be sent';
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    return `must be a URL such as https://example.com/hook, but ${error.message}`;
  }
}
