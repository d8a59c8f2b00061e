import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

const deploy = new URL('../../deploy/', import.meta.url);

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

export const alertRules = (): Rule[] => {
  const text = readFileSync(new URL('prometheus/alerts.yaml', deploy), 'utf8');
  const { groups } = parse(text) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
};

/** The expressions of the dashboard, with values instead of the variables of Grafana. */
export const dashboardExpressions = (): string[] => {
  const { panels } = JSON.parse(readFileSync(new URL('grafana/wharfinger.json', deploy), 'utf8')) as {
    panels: Panel[];
  };
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  return expressions.map((expr) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'));
};

/** The names of metrics in an expression. Label names and values are not among them. */
export function metricNamesIn(expression: string): string[] {
  const withoutLabels = expression.replaceAll(/\{[^}]*\}/g, '').replaceAll(/\b(?:by|on|group_left)\s*\([^)]*\)/g, '');
  return [...withoutLabels.matchAll(/\b(?:wharf|process|nodejs)_\w+|\bup\b/g)].map(([name]) => name);
}

/** The names that an expression can use: those of the metrics, and for a histogram those of its series. */
export function namesIn(metrics: string): Set<string> {
  const names = new Set<string>();
  for (const [, name = '', type] of metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    if (type === 'histogram') for (const suffix of ['bucket', 'sum', 'count']) names.add(`${name}_${suffix}`);
    else names.add(name);
  }
  return names;
}
