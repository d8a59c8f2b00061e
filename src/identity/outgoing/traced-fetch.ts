import { traceHeaders } from '../../base/trace-context.ts';
import { currentSpan, traceStep } from '../../base/tracing.ts';
import { type FetchedJson, type FetchJsonOptions, fetchJson } from './fetch-json.ts';

/** Fetches a JSON object as a step of the call that needs it. The other server gets the context of the trace. */
export async function tracedFetchJson(address: string, options: FetchJsonOptions): Promise<FetchedJson> {
  const attributes = { 'http.request.method': 'GET', 'server.address': URL.parse(address)?.hostname };
  return traceStep('fetch JSON', { kind: 'client', attributes }, () => {
    const span = currentSpan();
    return fetchJson(address, span ? { ...options, headers: traceHeaders(span.context) } : options);
  });
}
