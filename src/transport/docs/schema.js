import { el, prose } from './dom.js';
import { innermost, resolve, typeText } from './model.js';

/** The fields of a schema as an indented tree. Levels below the first are built when they are opened. */
export function schemaTree(doc, schema) {
  const { properties, required = [], description } = resolve(doc, schema);
  const rows = Object.entries(properties ?? {}).map(([name, field]) =>
    fieldRow(doc, name, field, required.includes(name)),
  );
  if (rows.length === 0) return el('p', { className: 'quiet' }, 'An object without fields.');
  const note = description === undefined ? [] : prose(description);
  return el('div', { className: 'schema' }, note, el('ul', { className: 'tree' }, rows));
}

function fieldRow(doc, name, field, required) {
  const head = [
    el('code', { className: 'key' }, name),
    el('span', { className: 'type' }, typeText(doc, field)),
    required ? mark('required') : undefined,
    field.readOnly ? mark('read-only') : undefined,
    field.writeOnly ? mark('write-only') : undefined,
    field.deprecated ? mark('deprecated') : undefined,
  ];
  const note = el('div', { className: 'note' }, prose(field.description));
  const inner = innermost(doc, field);
  if (inner.properties !== undefined)
    return el(
      'li',
      {},
      lazily(head, () => schemaTree(doc, inner)),
      note,
    );
  if (inner.enum !== undefined)
    return el(
      'li',
      {},
      lazily(head, () => valueList(inner)),
      note,
    );
  return el('li', {}, el('div', { className: 'row' }, head), note);
}

export const mark = (text) => el('span', { className: `mark ${text}` }, text);

function lazily(head, build) {
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
