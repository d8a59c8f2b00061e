import { OutgoingError, permittedUrl } from '../identity/outgoing/permitted-url.ts';

const MAX_LENGTH = 2048;

/** What keeps an address from being a sink, or nothing. Names are looked at again whenever they are resolved. */
export function sinkProblem(sink: string, allowInsecure: boolean): string | undefined {
  if (sink.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  try {
    const { hash } = permittedUrl(sink, allowInsecure);
    return hash === '' ? undefined : 'must have no fragment: it would not be sent';
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    return `must be a URL such as https://example.com/hook, but ${error.message}`;
  }
}
