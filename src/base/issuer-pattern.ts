import { issuerProblem } from './issuer-url.ts';
import { createLru } from './lru.ts';
import { matchesPattern, type PatternBudget } from './pattern.ts';

/**
 * One alternative of an issuer pattern, and the host that its issuers must have. `host` is a host name, or a domain with
 * a leading dot that stands for all hosts below it.
 */
interface IssuerAlternative {
  readonly pattern: string;
  readonly host: string;
}

const MAX_ALTERNATIVES = 20;
/** A host name with more labels is looked up under its last ones only. */
const MAX_LABELS = 10;

/** A reason why a pattern has no literal host. It completes the sentence "issuer_pattern …". */
export const NO_LITERAL_HOST =
  'must begin with https:// and a literal host, such as https://gitlab\\.example\\.com/.*; wildcards without / may ' +
  'precede a literal domain, such as https://[a-z0-9-]+\\.example\\.com';

const parsed = createLru<string, readonly IssuerAlternative[]>(1000);

/** The keys by which an issuer pattern is found: those of `issuerHostKeys`. Empty when it has no literal host. */
export const issuerPatternKeys = (pattern: string): readonly string[] => [
  ...new Set(alternativesOf(pattern).map(({ host }) => host)),
];

/** The keys of all patterns that can match an issuer: its host, and each domain above it with a leading dot. */
export function issuerHostKeys(issuer: string): readonly string[] {
  const host = hostOf(issuer);
  if (host === undefined) return [];
  const labels = host.split('.').slice(-MAX_LABELS);
  const domains = labels.slice(1, -1).map((_, at) => `.${labels.slice(at + 1).join('.')}`);
  return [host, ...domains];
}

/**
 * Whether an issuer pattern matches the whole issuer. The host of the issuer must also be the literal host of the
 * pattern, or be below its literal domain, so that a wildcard never decides which host is trusted.
 */
export function matchesIssuerPattern(pattern: string, issuer: string, budget?: PatternBudget): boolean {
  const host = hostOf(issuer);
  if (host === undefined) return false;
  return alternativesOf(pattern).some(
    (alternative) => hasHost(host, alternative.host) && matchesPattern(alternative.pattern, issuer, budget),
  );
}

const hasHost = (host: string, required: string): boolean =>
  required.startsWith('.') ? host.endsWith(required) && host.length > required.length : host === required;

function hostOf(issuer: string): string | undefined {
  return issuerProblem(issuer) === undefined ? new URL(issuer).hostname : undefined;
}

/** Empty unless every alternative has a literal host. */
function alternativesOf(pattern: string): readonly IssuerAlternative[] {
  const cached = parsed.get(pattern);
  if (cached) return cached;
  const texts = splitAlternatives(pattern);
  const hosts = texts.map(literalHostOf);
  const isAccepted = texts.length <= MAX_ALTERNATIVES && !hosts.includes(undefined);
  const alternatives = isAccepted ? texts.map((text, at) => ({ pattern: text, host: hosts[at] ?? '' })) : [];
  parsed.set(pattern, alternatives);
  return alternatives;
}

/** Splits a pattern at each `|` that is outside of groups and classes. `^(a|b)$` is split like `a|b`. */
function splitAlternatives(pattern: string): readonly string[] {
  const inner = pattern.replace(/^\^/, '').replace(/(?<!\\)\$$/, '');
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  let isWrapped = /^\((?!\?(?!:))/.test(inner);
  // An escaped character, a class, or one character.
  for (const { 0: token, index } of inner.matchAll(/\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|[\s\S]/g)) {
    if (token === '(') depth++;
    if (token === ')') depth--;
    if (depth === 0 && index + 1 < inner.length) isWrapped = false;
    if (token !== '|' || depth !== 0) continue;
    parts.push(inner.slice(start, index));
    start = index + 1;
  }
  if (isWrapped && depth === 0) return splitAlternatives(inner.replace(/^\((?:\?:)?/, '').slice(0, -1));
  return [...parts, inner.slice(start)];
}

const SCHEME = /https?\??:(?:\\?\/){2}/y;
const QUANTIFIER = /(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??/y;
/** A character of a host name. A dot without a quantifier is meant literally, and the check of the host enforces it. */
const LITERAL = /([A-Za-z0-9_.-])|\\([.-])/y;
/** What matches no slash: a class of such characters, or an alternation of literals. */
const WILDCARDS = [
  /\[(?:[A-Za-z0-9_.-]|\\[dw.-])+\]/y,
  /\[\^(?:[A-Za-z0-9_.:@?#-]|\\[dws.-])*\\?\/(?:[A-Za-z0-9_.:@?#-]|\\[dws./-])*\]/y,
  /\\[dw]/y,
  /\((?:\?:)?(?:[A-Za-z0-9_|-]|\\[.-]|\[[A-Za-z0-9_.-]+\][*+?]?)+\)/y,
];
/** What may follow the host: its end, a port or a path. */
const END_OF_HOST = /$|\$$|\\?[/:]|\((?:\?:)?\\?[/:]/y;

const HOST = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;
const DOMAIN = /^(?:\.[a-z0-9_-]+)+\.[a-z][a-z0-9-]*$/;
/** Domains below which anybody can register names, of the usual form in country domains: `.co.uk`. */
const PUBLIC_SUFFIX = /^\.(?:ac|co|com|edu|go|gob|gov|mil|ne|net|or|org)\.[a-z]{2}$/;

/** The host that all issuers of one alternative have, or the domain that they are below; undefined without either. */
function literalHostOf(alternative: string): string | undefined {
  let at = 0;
  const read = (expression: RegExp): RegExpExecArray | null => {
    expression.lastIndex = at;
    const found = expression.exec(alternative);
    if (found) at = expression.lastIndex;
    return found;
  };
  if (!read(SCHEME)) return undefined;
  let hasWildcard = false;
  let literal = '';
  for (;;) {
    const character = read(LITERAL);
    if (character) {
      literal += character[1] ?? character[2];
      if (!read(QUANTIFIER)) continue;
      // A dot with a quantifier matches anything, also a slash. Another character is optional or repeated.
      if (character[0] === '.') return undefined;
    } else {
      if (!WILDCARDS.some(read)) break;
      read(QUANTIFIER);
    }
    hasWildcard = true;
    literal = '';
  }
  if (!read(END_OF_HOST)) return undefined;
  const host = literal.toLowerCase();
  if (!hasWildcard) return HOST.test(host) ? host : undefined;
  return DOMAIN.test(host) && !PUBLIC_SUFFIX.test(host) ? host : undefined;
}
