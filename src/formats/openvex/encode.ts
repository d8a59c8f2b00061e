import { type AdvisoryJson, type EventJson, essenceOf } from '../advisory.ts';
import { isAdvisoryId } from '../advisory-id.ts';
import { ecosystemOfType, typeOfEcosystem } from '../ecosystems.ts';
import { purlOf } from '../purl.ts';
import type { Fields } from '../reading.ts';
import { restOf } from '../rest.ts';
import { decodeOpenVex, NOBODY } from './decode.ts';
import { meaningOf } from './meaning.ts';
import { statementId } from './statement-id.ts';

const CONTEXT = 'https://openvex.dev/ns/v0.2.0';

/** The document of a package with its advisories. */
export function encodeOpenVex(packageName: string, advisories: readonly AdvisoryJson[]): Fields {
  const times = advisories.flatMap(({ updateTime, events = [] }) => updateTime ?? events.at(-1)?.createTime ?? []);
  const head = {
    '@context': CONTEXT,
    '@id': `urn:x-wharfinger:openvex:${encodeURIComponent(packageName)}`,
    author: advisories.find(({ author }) => author)?.author ?? NOBODY,
    timestamp: times.sort().at(-1) ?? new Date(0).toISOString(),
    version: 1,
  };
  return { ...head, statements: advisories.map(essenceOf).flatMap((advisory) => statementsOf(advisory, head)) };
}

function statementsOf(advisory: AdvisoryJson, head: Fields): Fields[] {
  const { advisoryId, aliases = [] } = advisory;
  const name = aliases.find((alias) => !isAdvisoryId(alias)) ?? advisoryId;
  // Our own id stands before any other of its kind, by which a reader knows it.
  const others = [advisoryId, ...aliases].filter((alias) => alias !== name);
  const vulnerability = { name, ...(others.length > 0 && { aliases: [...new Set(others)] }) };
  const statement = (event: EventJson, at: number, rest?: Fields): Fields => ({
    '@id': statementId(advisoryId, at, rest),
    vulnerability,
    ...(event.createTime && { timestamp: event.createTime }),
    products: productsOf(advisory, event),
    ...meaningOf(event),
  });
  // Where nothing has happened yet, a document still has to say so.
  const [first, ...later] = advisory.events?.length ? advisory.events : [{}];
  const core = [first ?? {}, ...later].map((event, at) => statement(event, at));
  const rest = restOf(advisory, readable({ ...head, statements: core }, advisoryId));
  return rest === undefined ? core : core.with(0, statement(first ?? {}, 0, rest));
}

/** As much of an advisory as the format can say. */
function readable(document: Fields, advisoryId: string): Fields {
  try {
    return decodeOpenVex(document).find((advisory) => advisory.advisoryId === advisoryId) ?? {};
  } catch {
    return {};
  }
}

/** The artifact, in the versions that a fix names. */
function productsOf(advisory: AdvisoryJson, { fixed, patched }: EventJson): Fields[] {
  const { artifactName: name, artifactType: type = '', artifactArchitecture: architecture = '' } = advisory;
  const versions = patched?.patchedVersions?.length ? patched.patchedVersions : [fixed?.fixedVersion ?? ''];
  const component = componentOf(advisory);
  return versions.map((version) => ({
    '@id': purlOf({ type, name, version, architecture }) ?? `urn:x-wharfinger:artifact:${encodeURIComponent(name)}`,
    ...(component && { subcomponents: [{ '@id': component }] }),
  }));
}

/** Scanners have names of their own for the types of packages. */
const scannerTypes = new Map(
  Object.entries({
    'go-module': 'golang',
    python: 'pypi',
    'java-archive': 'maven',
    'rust-crate': 'cargo',
    'php-composer': 'composer',
    dotnet: 'nuget',
  }),
);

function componentOf({ componentName: name, componentType = '' }: AdvisoryJson): string | undefined {
  if (!name) return undefined;
  const type = scannerTypes.get(componentType) ?? typeOfEcosystem(componentType);
  return ecosystemOfType(type) === undefined ? undefined : purlOf({ type, name });
}
