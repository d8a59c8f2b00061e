import type { JsonObject } from '../../lenient-json.ts';
import { type PackageCoordinates, parsePurl } from '../../packages/purl.ts';
import {
  listOf,
  malformed,
  omitEmpty,
  requireObject,
  requireText,
  requireTime,
  textOf,
  textsOf,
} from '../../strict-json.ts';
import { deriveAdvisoryId, isAdvisoryId } from '../advisory-id.ts';
import { type AdvisoryJson, APPROVED, checkAdvisory, type EventJson } from '../advisory-json.ts';
import { mergeExtension } from '../extension-fields.ts';
import { extensionInId } from './statement-id.ts';
import { eventOf, isJustification, type VexStatus } from './status.ts';

/** The author of an exported document if no advisory in it names one. */
export const DEFAULT_AUTHOR = 'Wharfinger';

/**
 * Decodes an OpenVEX document to an advisory for each pair of vulnerability and product. Each statement is an event.
 */
export function decodeOpenVex(value: unknown): AdvisoryJson[] {
  const document = requireObject(value, '');
  const decoded = new Map<string, { advisory: AdvisoryJson; events: EventJson[]; extension?: JsonObject }>();
  const statements = listOf(document.statements, 'statements');
  if (statements.length === 0) throw malformed('statements', 'must have at least one statement');
  for (const [index, value] of statements.entries()) {
    const field = `statements[${index}]`;
    const statement = requireObject(value, field);
    const extension = extensionInId(textOf(statement['@id'], `${field}.@id`), `${field}.@id`);
    for (const { advisory, event } of readStatement(document, statement, field)) {
      const entry = decoded.get(advisory.advisoryId) ?? { advisory, events: [], ...(extension && { extension }) };
      // A statement may name several versions of a product. They are several fixes of one advisory.
      entry.events.push(event);
      decoded.set(advisory.advisoryId, entry);
    }
  }
  return [...decoded.values()].map(({ advisory, events, extension }) => {
    const sorted = { ...advisory, events: sortByTime(events) };
    return extension === undefined ? sorted : checkAdvisory(mergeExtension(sorted, extension), 'statements.@id');
  });
}

const sortByTime = (events: readonly EventJson[]): EventJson[] =>
  events.toSorted(({ createTime: a = '' }, { createTime: b = '' }) => (a < b ? -1 : a > b ? 1 : 0));

function readStatement(
  document: JsonObject,
  statement: JsonObject,
  field: string,
): { advisory: AdvisoryJson; event: EventJson }[] {
  const names = vulnerabilityNamesIn(statement.vulnerability, `${field}.vulnerability`);
  const status = readStatus(statement, field);
  const createTime = requireTime(statement.timestamp ?? document.timestamp, `${field}.timestamp`);
  const author = textOf(document.author, 'author');

  const products = listOf(statement.products, `${field}.products`).map((product, i) =>
    readProduct(product, `${field}.products[${i}]`),
  );
  if (products.length === 0) throw malformed(`${field}.products`, 'must name at least one product');
  const hasOneProduct = new Set(products.map(keyOf)).size === 1;
  return products.map((product) => ({
    advisory: advisoryOf(names, product, hasOneProduct, author === DEFAULT_AUTHOR ? '' : author),
    event: { createTime, reviewState: APPROVED, ...eventOf(status, product.version) },
  }));
}

/** The names of a vulnerability: a string up to version 0.0.1 of the format, later an object with aliases. */
function vulnerabilityNamesIn(value: unknown, field: string): string[] {
  if (typeof value === 'string') return [requireText(value, field)];
  const { name, aliases, '@id': id } = requireObject(value, field);
  return [...new Set([requireText(name ?? id, `${field}.name`), ...textsOf(aliases, `${field}.aliases`)])];
}

interface Product extends PackageCoordinates {
  readonly component?: PackageCoordinates;
}

function readProduct(value: unknown, field: string): Product {
  const product = readComponent(value, field);
  const [first] =
    typeof value === 'string' ? [] : listOf(requireObject(value, field).subcomponents, `${field}.subcomponents`);
  return first === undefined ? product : { ...product, component: readComponent(first, `${field}.subcomponents[0]`) };
}

function readComponent(value: unknown, field: string): PackageCoordinates {
  if (typeof value === 'string') return packageOf(requireText(value, field));
  const { '@id': id, identifiers } = requireObject(value, field);
  const purl = identifiers === undefined ? undefined : requireObject(identifiers, `${field}.identifiers`).purl;
  return packageOf(requireText(purl ?? id, `${field}.@id`));
}

/** An id that is not a purl is the name of the product. */
const packageOf = (id: string): PackageCoordinates => parsePurl(id) ?? { type: '', name: id };

const keyOf = ({ type, name, architecture = '' }: Product): string => JSON.stringify([type, name, architecture]);

function advisoryOf(names: readonly string[], product: Product, hasOneProduct: boolean, author: string): AdvisoryJson {
  const advisoryId = hasOneProduct ? names.find(isAdvisoryId) : undefined;
  return omitEmpty({
    advisoryId: advisoryId ?? deriveAdvisoryId(names[0] ?? '', keyOf(product)),
    author,
    artifactName: product.name,
    artifactType: product.type,
    artifactArchitecture: product.architecture ?? '',
    componentName: product.component?.name ?? '',
    componentType: product.component?.type ?? '',
    aliases: names.filter((name) => name !== advisoryId),
  });
}

const STATUSES = ['not_affected', 'affected', 'fixed', 'under_investigation'] as const;

function readStatus(statement: JsonObject, field: string): VexStatus {
  const text = (name: string): string => textOf(statement[name], `${field}.${name}`);
  const status = STATUSES.find((name) => name === statement.status);
  if (status === undefined) throw malformed(`${field}.status`, `must be one of ${STATUSES.join(', ')}`);
  const justification = text('justification');
  if (justification !== '' && !isJustification(justification)) {
    throw malformed(`${field}.justification`, 'must be a justification that the OpenVEX specification defines');
  }
  const [impact_statement, action_statement] = [text('impact_statement'), text('action_statement')];
  return omitEmpty({ status, justification, impact_statement, action_statement, status_notes: text('status_notes') });
}
