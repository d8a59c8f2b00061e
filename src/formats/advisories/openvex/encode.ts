import type { JsonObject } from '../../lenient-json.ts';
import { ecosystemOf, purlTypeOf } from '../../packages/ecosystems.ts';
import { formatPurl } from '../../packages/purl.ts';
import { isAdvisoryId } from '../advisory-id.ts';
import { type AdvisoryJson, type EventJson, stripServerFields } from '../advisory-json.ts';
import { extensionOf } from '../extension-fields.ts';
import { DEFAULT_AUTHOR, decodeOpenVex } from './decode.ts';
import { statementId } from './statement-id.ts';
import { vexStatusOf } from './status.ts';

const CONTEXT = 'https://openvex.dev/ns/v0.2.0';

/** Encodes the advisories of a package as one document. */
export function encodeOpenVex(packageName: string, advisories: readonly AdvisoryJson[]): JsonObject {
  const times = advisories.flatMap(({ updateTime, events = [] }) => updateTime ?? events.at(-1)?.createTime ?? []);
  const header = {
    '@context': CONTEXT,
    '@id': `urn:x-wharfinger:openvex:${encodeURIComponent(packageName)}`,
    author: advisories.find(({ author }) => author)?.author ?? DEFAULT_AUTHOR,
    timestamp: times.sort().at(-1) ?? new Date(0).toISOString(),
    version: 1,
  };
  return {
    ...header,
    statements: advisories.map(stripServerFields).flatMap((advisory) => statementsOf(advisory, header)),
  };
}

function statementsOf(advisory: AdvisoryJson, header: JsonObject): JsonObject[] {
  const { advisoryId, aliases = [] } = advisory;
  const name = aliases.find((alias) => !isAdvisoryId(alias)) ?? advisoryId;
  // The decoder takes the first alias with the form of an advisory id as the id, so the id comes first.
  const others = [advisoryId, ...aliases].filter((alias) => alias !== name);
  const vulnerability = { name, ...(others.length > 0 && { aliases: [...new Set(others)] }) };
  const statement = (event: EventJson, index: number, extension?: JsonObject): JsonObject => ({
    '@id': statementId(advisoryId, index, extension),
    vulnerability,
    ...(event.createTime && { timestamp: event.createTime }),
    products: productsOf(advisory, event),
    ...vexStatusOf(event),
  });
  // An advisory without events needs a statement too, or the document would not mention it.
  const [first, ...later] = advisory.events?.length ? advisory.events : [{}];
  const core = [first ?? {}, ...later].map((event, index) => statement(event, index));
  const extension = extensionOf(advisory, tryDecode({ ...header, statements: core }, advisoryId));
  return extension === undefined ? core : core.with(0, statement(first ?? {}, 0, extension));
}

/** The part of the advisory that the format can express: what the document decodes to. */
function tryDecode(document: JsonObject, advisoryId: string): JsonObject {
  try {
    return decodeOpenVex(document).find((advisory) => advisory.advisoryId === advisoryId) ?? {};
  } catch {
    return {};
  }
}

/** The artifact in each fixed version, or without a version if the event is not a fix. */
function productsOf(advisory: AdvisoryJson, { fixed, patched }: EventJson): JsonObject[] {
  const { artifactName: name, artifactType: type = '', artifactArchitecture: architecture = '' } = advisory;
  const versions = patched?.patchedVersions?.length ? patched.patchedVersions : [fixed?.fixedVersion ?? ''];
  const component = componentOf(advisory);
  return versions.map((version) => ({
    '@id': formatPurl({ type, name, version, architecture }) ?? `urn:x-wharfinger:artifact:${encodeURIComponent(name)}`,
    ...(component && { subcomponents: [{ '@id': component }] }),
  }));
}

/** The purl types of the package types that scanners report. */
const purlTypesOfScanners = new Map(
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
  const type = purlTypesOfScanners.get(componentType) ?? purlTypeOf(componentType);
  return ecosystemOf(type) === undefined ? undefined : formatPurl({ type, name });
}
