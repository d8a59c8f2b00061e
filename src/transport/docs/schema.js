import { el, prose } from './dom.js';
import { innermost, resolve, typeText } from './model.js';

/** The fields of a schema as an indented tree. Nested levels are built when the user opens them. */
export function schemaTree(doc, schema) {
  const { properties, required = [], description } = resolve(doc, schema);
  const rows = Object.entries(properties ?? {}).map(([name, field]) =>
    fieldRow(doc, name, field, required.includes(name)),
  );
  if (rows.length === 0) return el('p', { className: 'muted' }, 'No fields.');
  const note = description === undefined ? [] : prose(description);
  return el('div', { className: 'schema' }, note, el('ul', { className: 'tree' }, rows));
}

function fieldRow(doc, name, field, required) {
  const head = [
    el('code', { className: 'key' }, name),
    el('span', { className: 'type' }, typeText(doc, field)),
    required ? badge('required') : undefined,
    field.readOnly ? badge('read-only') : undefined,
    field.writeOnly ? badge('write-only') : undefined,
    field.deprecated ? badge('deprecated') : undefined,
  ];
  const note = el('div', { className: 'note' }, prose(field.description));
  const inner = innermost(doc, field);
  if (inner.properties !== undefined)
    return el(
      'li',
      {},
      buildOnOpen(head, () => schemaTree(doc, inner)),
      note,
    );
  if (inner.enum !== undefined)
    return el(
      'li',
      {},
      buildOnOpen(head, () => valueList(inner)),
      note,
    );
  return el('li', {}, el('div', { className: 'row' }, head), note);
}

export const badge = (text) => el('span', { className: `mark ${text}` }, text);

function buildOnOpen(head, build) {
  const details = el('details', {}, el('summary', { className: 'row' }, head));
  details.addEventListener('toggle', () => details.append(build()), { once: true });
  return details;
}

export function valueList({ enum: values, 'x-enum-descriptions': texts = [] }) {
  return el(
    'ul',
    { className: 'values' },
    values.map((value, i) => el('li', {}, el('code', {}, value), texts[i] ? el('span', {}, texts[i]) : undefined)),
  );
}
