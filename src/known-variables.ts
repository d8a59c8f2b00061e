import { nearest } from './base/nearest.ts';
import { settings } from './config.ts';
import { secretFileKeyOf, variableOfKey } from './setting-sources.ts';

/** The variables that name the settings file, that only clients use, and that a supervisor passes to its workers. */
const otherVariables = [
  'WHARF_CONFIG',
  ...['WHARF_SERVER', 'WHARF_TOKEN', 'WHARF_CA'],
  ...['WHARF_WORKER_PORT', 'WHARF_WORKER_OPERATIONS_PORT'],
];

const knownVariables: ReadonlySet<string> = new Set([
  ...otherVariables,
  ...Object.values(settings).flatMap((setting) => [
    setting.variable,
    ...('secret' in setting ? [variableOfKey(secretFileKeyOf(setting))] : []),
  ]),
]);

/** Returns a sentence about the first variable that begins with WHARF_ but is not a setting: a typing error. */
export function unknownVariable(env: NodeJS.ProcessEnv): string | undefined {
  const variable = Object.keys(env)
    .sort()
    .find((name) => name.startsWith('WHARF_') && !knownVariables.has(name) && !isOfKubernetes(name, env[name] ?? ''));
  if (variable === undefined) return undefined;
  const meant = nearest(
    variable.slice('WHARF_'.length),
    [...knownVariables].map((name) => name.slice('WHARF_'.length)),
  );
  return `${variable} is not a setting: ${meant ? `did you mean WHARF_${meant}?` : 'remove it'} 'wharf serve --help' lists all settings`;
}

/**
 * Whether Kubernetes has set a variable. It sets some in every pod for every Service of the namespace, such as
 * WHARF_SERVICE_HOST and WHARF_PORT_8080_TCP_ADDR for one with the name `wharf`. WHARF_PORT has a URL there; a person
 * who writes it means a port.
 */
function isOfKubernetes(variable: string, value: string): boolean {
  if (/_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/.test(variable)) return true;
  if (/_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(variable)) return true;
  return variable.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value);
}
