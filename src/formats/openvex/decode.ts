import { type AdvisoryJson, checkAdvisory, type EventJson, PUBLISHED } from '../advisory.ts';
import { advisoryIdFrom, isAdvisoryId } from '../advisory-id.ts';
import { type Package, readPurl } from '../purl.ts';
import { damaged, type Fields, fieldsOf, filled, givenText, listOf, textOf, textsOf, timeOf } from '../reading.ts';
import { withRest } from '../rest.ts';
import { eventOf, isJustification, type Meaning } from './meaning.ts';
import { readRest } from './statement-id.ts';

/** The author of a document whose advisories name none. */
export const NOBODY = 'Wharfinger';

/** Reads an OpenVEX document: an advisory for each vulnerability and product, with an event for each statement. */
export function decodeOpenVex(value: unknown): AdvisoryJson[] {
  const document = fieldsOf(value, '');
  const found = new Map<string, { advisory: AdvisoryJson; events: EventJson[]; rest?: Fields }>();
  const statements = listOf(document.statements, 'statements');
  if (statements.length === 0) throw damaged('statements', 'must have at least one statement');
  for (const [at, statement] of statements.entries()) {
    const field = `statements[${at}]`;
    const given = fieldsOf(statement, field);
    const rest = readRest(textOf(given['@id'], `${field}.@id`), `${field}.@id`);
    for (const { advisory, event } of readStatement(document, given, field)) {
      const known = found.get(advisory.advisoryId) ?? { advisory, events: [], ...(rest && { rest }) };
      // A statement may cover several versions of a product, which are several fixes of one advisory.
      known.events.push(event);
      found.set(advisory.advisoryId, known);
    }
  }
  return [...found.values()].map(({ advisory, events, rest }) => {
    const sorted = { ...advisory, events: inTime(events) };
    return rest === undefined ? sorted : checkAdvisory(withRest(sorted, rest), 'statements.@id');
  });
}

const inTime = (events: readonly EventJson[]): EventJson[] =>
  events.toSorted(({ createTime: a = '' }, { createTime: b = '' }) => (a < b ? -1 : a > b ? 1 : 0));

function readStatement(document: Fields, given: Fields, field: string): { advisory: AdvisoryJson; event: EventJson }[] {
  const names = namesIn(given.vulnerability, `${field}.vulnerability`);
  const meaning = readMeaning(given, field);
  const createTime = timeOf(given.timestamp ?? document.timestamp, `${field}.timestamp`);
  const author = textOf(document.author, 'author');

  const products = listOf(given.products, `${field}.products`).map((one, i) =>
    readProduct(one, `${field}.products[${i}]`),
  );
  if (products.length === 0) throw damaged(`${field}.products`, 'must name at least one product');
  const isOne = new Set(products.map(keyOf)).size === 1;
  return products.map((product) => ({
    advisory: advisoryOf(names, product, isOne, author === NOBODY ? '' : author),
    event: { createTime, reviewState: PUBLISHED, ...eventOf(meaning, product.version) },
  }));
}

/** A vulnerability's names, as a text (up to version 0.0.1) or with aliases. */
function namesIn(value: unknown, field: string): string[] {
  if (typeof value === 'string') return [givenText(value, field)];
  const { name, aliases, '@id': id } = fieldsOf(value, field);
  return [...new Set([givenText(name ?? id, `${field}.name`), ...textsOf(aliases, `${field}.aliases`)])];
}

interface Product extends Package {
  readonly component?: Package;
}

function readProduct(value: unknown, field: string): Product {
  const product = readComponent(value, field);
  const [first] =
    typeof value === 'string' ? [] : listOf(fieldsOf(value, field).subcomponents, `${field}.subcomponents`);
  return first === undefined ? product : { ...product, component: readComponent(first, `${field}.subcomponents[0]`) };
}

function readComponent(value: unknown, field: string): Package {
  if (typeof value === 'string') return packageOf(givenText(value, field));
  const { '@id': id, identifiers } = fieldsOf(value, field);
  const purl = identifiers === undefined ? undefined : fieldsOf(identifiers, `${field}.identifiers`).purl;
  return packageOf(givenText(purl ?? id, `${field}.@id`));
}

/** A product that is named by no purl has nothing but its name. */
const packageOf = (id: string): Package => readPurl(id) ?? { type: '', name: id };

const keyOf = ({ type, name, architecture = '' }: Product): string => JSON.stringify([type, name, architecture]);

function advisoryOf(names: readonly string[], product: Product, isOne: boolean, author: string): AdvisoryJson {
  const own = isOne ? names.find(isAdvisoryId) : undefined;
  return filled({
    advisoryId: own ?? advisoryIdFrom(names[0] ?? '', keyOf(product)),
    author,
    artifactName: product.name,
    artifactType: product.type,
    artifactArchitecture: product.architecture ?? '',
    componentName: product.component?.name ?? '',
    componentType: product.component?.type ?? '',
    aliases: names.filter((name) => name !== own),
  });
}

const STATUSES = ['not_affected', 'affected', 'fixed', 'under_investigation'] as const;

function readMeaning(given: Fields, field: string): Meaning {
  const text = (name: string): string => textOf(given[name], `${field}.${name}`);
  const status = STATUSES.find((known) => known === given.status);
  if (status === undefined) throw damaged(`${field}.status`, `must be one of ${STATUSES.join(', ')}`);
  const justification = text('justification');
  if (justification !== '' && !isJustification(justification)) {
    throw damaged(`${field}.justification`, 'must be a justification of the OpenVEX specification');
  }
  const [impact_statement, action_statement] = [text('impact_statement'), text('action_statement')];
  return filled({ status, justification, impact_statement, action_statement, status_notes: text('status_notes') });
}
