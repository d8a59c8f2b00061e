import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';

export interface ExportReportOptions {
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly url: string;
  /** Called when spans are taken from the queue. */
  readonly onExport: (count: number) => void;
  readonly countSpans: Metrics['countSpans'];
  readonly now?: () => number;
}

/** How often failures are logged while they last. */
const REPORT_MS = 10 * 60 * 1000;

/** Returns the same exporter, which counts spans, and logs its first failure, then one line every ten minutes. */
export function withExportReports(exporter: SpanExporter, options: ExportReportOptions): SpanExporter {
  const { log, url, onExport, countSpans, now = () => performance.now() } = options;
  // Credentials in the URL are not logged.
  const { origin } = new URL(url);
  let lost = 0;
  let reportAt: number | undefined;

  function onFailure(count: number, error: Error | undefined): void {
    lost += count;
    if (reportAt !== undefined && now() < reportAt) return;
    reportAt = now() + REPORT_MS;
    log.warn({ collector: origin, lost, error: reasonOf(error) }, 'cannot export traces');
  }

  function onSuccess(): void {
    if (reportAt !== undefined) log.info({ collector: origin, lost }, 'exports traces again');
    reportAt = undefined;
    lost = 0;
  }

  return {
    export(spans, done) {
      onExport(spans.length);
      exporter.export(spans, (result) => {
        const isExported = result.code === 0;
        countSpans(isExported ? 'exported' : 'lost', spans.length);
        if (isExported) onSuccess();
        else onFailure(spans.length, result.error);
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}

/** The message alone: the error of an HTTP response has its whole body. */
const reasonOf = (error: Error | undefined): string => {
  const code = (error as { code?: unknown } | undefined)?.code;
  return [error?.message ?? 'unknown', code].filter((part) => part !== undefined && part !== '').join(', code ');
};
