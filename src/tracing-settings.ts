import type { SamplerSettings, TracingSettings } from './base/tracing.ts';
import { ConfigError } from './config-values.ts';

const SAMPLERS: Readonly<Record<string, { readonly isParentBased: boolean; readonly ratio?: number }>> = {
  always_on: { isParentBased: false, ratio: 1 },
  always_off: { isParentBased: false, ratio: 0 },
  traceidratio: { isParentBased: false },
  parentbased_always_on: { isParentBased: true, ratio: 1 },
  parentbased_always_off: { isParentBased: true, ratio: 0 },
  parentbased_traceidratio: { isParentBased: true },
};

/** Returns undefined unless an endpoint is set. Throws a ConfigError for a value that cannot be used. */
export function loadTracingSettings(env: NodeJS.ProcessEnv): TracingSettings | undefined {
  const isDisabled = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  const url = endpointIn(env);
  if (url === undefined || isDisabled) return undefined;
  const protocolVariable = firstSet(env, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL');
  if (protocolVariable && env[protocolVariable] !== 'http/protobuf') {
    throw refused(protocolVariable, env[protocolVariable], 'only http/protobuf is supported, usually on port 4318');
  }
  const headersVariable = firstSet(env, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'OTEL_EXPORTER_OTLP_HEADERS');
  const resourceAttributes = pairsIn('OTEL_RESOURCE_ATTRIBUTES', env.OTEL_RESOURCE_ATTRIBUTES);
  return {
    url,
    headers: headersVariable ? pairsIn(headersVariable, env[headersVariable], true) : {},
    resourceAttributes: {
      ...resourceAttributes,
      'service.name': env.OTEL_SERVICE_NAME || resourceAttributes['service.name'] || 'wharfinger',
    },
    sampler: samplerIn(env),
    exportDelayMs: delayIn(env),
  };
}

/** The variable for traces alone is the whole URL, the one for all signals is its beginning. */
function endpointIn(env: NodeJS.ProcessEnv): string | undefined {
  const variable = firstSet(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT');
  if (!variable) return undefined;
  const url = URL.parse(env[variable] ?? '');
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw refused(variable, env[variable], 'it must be a URL such as http://127.0.0.1:4318');
  }
  if (variable === 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') return url.href;
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return url.href;
}

function samplerIn(env: NodeJS.ProcessEnv): SamplerSettings {
  const name = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  const sampler = Object.hasOwn(SAMPLERS, name) ? SAMPLERS[name] : undefined;
  if (!sampler) {
    throw refused('OTEL_TRACES_SAMPLER', name, `use one of ${Object.keys(SAMPLERS).join(', ')}`);
  }
  if (sampler.ratio !== undefined) return { ...sampler, ratio: sampler.ratio };
  const text = env.OTEL_TRACES_SAMPLER_ARG || '1';
  const ratio = /^[0-9]*\.?[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (!(ratio >= 0 && ratio <= 1)) {
    throw refused('OTEL_TRACES_SAMPLER_ARG', text, 'it must be a number from 0 to 1, such as 0.1');
  }
  return { ...sampler, ratio };
}

function delayIn({ OTEL_BSP_SCHEDULE_DELAY: text = '5000' }: NodeJS.ProcessEnv): number {
  if (/^[0-9]{1,6}$/.test(text)) return Number(text);
  throw refused('OTEL_BSP_SCHEDULE_DELAY', text, 'it must be a number of milliseconds, such as 5000');
}

/** Pairs as in `key=value,key2=value2`, whose values are percent-encoded. */
function pairsIn(variable: string, text = '', isSecret = false): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const pair of text.split(',').filter((part) => part.trim() !== '')) {
    const cut = pair.indexOf('=');
    const key = pair.slice(0, cut).trim();
    if (cut < 0 || key === '') {
      throw refused(variable, isSecret ? undefined : text, 'it must have the form key=value,key2=value2');
    }
    const value = pair.slice(cut + 1).trim();
    try {
      pairs[key] = decodeURIComponent(value);
    } catch {
      pairs[key] = value;
    }
  }
  return pairs;
}

const firstSet = (env: NodeJS.ProcessEnv, ...variables: string[]): string | undefined =>
  variables.find((variable) => env[variable]);

const refused = (variable: string, value: string | undefined, reason: string): ConfigError =>
  new ConfigError(`${variable}${value === undefined ? '' : `=${JSON.stringify(value)}`} cannot be used: ${reason}`);
