import { parseTraceContext, traceHeaders } from '../base/trace-context.ts';
import { runInSpan, type Tracing } from '../base/tracing.ts';
import type { EventRow } from './cloud-event.ts';
import type { SinkResponse } from './sink-connection.ts';

/**
 * Records an attempt to deliver an event as a trace of its own, which links to the call that caused the event: the last
 * attempt may be hours after the call. The sink gets the context of the attempt in headers. The attributes of the event
 * have the context of the call.
 */
export async function traceAttempt(
  tracing: Tracing,
  { sink, subscription }: { readonly sink: string; readonly subscription: string },
  event: EventRow & { readonly attempts: number },
  send: (headers: Record<string, string>) => Promise<SinkResponse>,
): Promise<SinkResponse> {
  const { traceparent, tracestate } = JSON.parse(event.extensions) as Record<string, string | undefined>;
  const attributes = {
    'http.request.method': 'POST',
    // Not the whole URL, which may contain a secret.
    'server.address': URL.parse(sink)?.hostname,
    'http.request.resend_count': event.attempts,
    'cloudevents.event_id': event.event_id,
    'cloudevents.event_type': event.type,
    'wharf.subscription': subscription,
  };
  const cause = parseTraceContext(traceparent, tracestate);
  const span = tracing.startCaused('deliver event', { kind: 'client', attributes }, cause);
  try {
    const response = await runInSpan(span, () => send(traceHeaders(span.context)));
    const { status } = response;
    span.set({ 'http.response.status_code': status });
    span.end(status >= 200 && status < 300 ? undefined : { type: String(status), isFault: true });
    return response;
  } catch (error) {
    span.end({ type: (error as Error).name, isFault: true });
    throw error;
  }
}
