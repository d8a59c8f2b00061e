import { codeBlock, el, foldable, highlighted, inline, prose } from './dom.js';
import { labelOf, pathPieces, resolve, typeText } from './model.js';
import { requestPanel } from './request.js';
import { badge, schemaTree, valueList } from './schema.js';

/** One operation: its description on the left, its request and response examples on the right. */
export function operationView(doc, operation) {
  const heading = el(
    'h2',
    { id: `${operation.id}-title` },
    el('a', { className: 'self', href: `#${operation.id}` }, operation.title),
  );
  return el(
    'article',
    { className: 'operation', id: operation.id, 'aria-labelledby': heading.id },
    heading,
    endpoint(operation),
    el(
      'div',
      { className: 'columns' },
      el(
        'div',
        { className: 'reference' },
        prose(operation.description),
        facts(operation),
        parameterTable(doc, operation),
        operation.body ? part('Request body', schemaTree(doc, operation.body.schema)) : undefined,
        part('Response', responseSchema(doc, operation)),
      ),
      el('div', { className: 'examples' }, requestPanel(doc, operation), exampleResponse(operation)),
    ),
  );
}

export const verbBadge = (verb) => el('span', { className: `verb ${verb.toLowerCase()}` }, verb);

export const endpoint = (operation) =>
  el(
    'p',
    { className: 'endpoint' },
    verbBadge(operation.verb),
    el(
      'code',
      {},
      pathPieces(operation).map((piece) =>
        piece.variable ? el('span', { className: 'variable' }, `{${piece.variable}}`) : foldable(piece),
      ),
    ),
  );

const part = (title, ...content) => el('section', {}, el('h3', {}, title), content);

function facts(operation) {
  const fact = (name, ...value) => [el('dt', {}, name), el('dd', {}, value)];
  return el(
    'dl',
    { className: 'facts' },
    fact('Access', inline(operation.access)),
    operation.event ? fact('Event', inline(operation.event)) : [],
    fact('gRPC', el('code', {}, foldable(operation['x-wharf-grpc-method']))),
  );
}

function parameterTable(doc, operation) {
  if (operation.parameters.length === 0) return undefined;
  const heads = ['Parameter', 'Description'];
  const table = el(
    'table',
    {},
    el(
      'thead',
      {},
      el(
        'tr',
        {},
        heads.map((head) => el('th', { scope: 'col' }, head)),
      ),
    ),
    el(
      'tbody',
      {},
      operation.parameters.map((parameter) => parameterRow(doc, parameter)),
    ),
  );
  return part('Parameters', table);
}

function parameterRow(doc, parameter) {
  const schema = resolve(doc, parameter.schema);
  const value = schema.items ? resolve(doc, schema.items) : schema;
  const required = parameter.required && !parameter['x-wharf-optional'];
  return el(
    'tr',
    {},
    el(
      'th',
      { scope: 'row' },
      el('code', { className: 'key' }, foldable(labelOf(parameter))),
      el(
        'span',
        { className: 'location' },
        `${parameter.in}, ${typeText(doc, parameter.schema)}`,
        required ? badge('required') : undefined,
      ),
    ),
    el('td', {}, prose(parameter.description), valueDetails(doc, value)),
  );
}

function valueDetails(doc, { enum: values, contentSchema, ...rest }) {
  const expandable = (title, content) => el('details', { className: 'more' }, el('summary', {}, title), content);
  if (values !== undefined) return expandable(`${values.length} values`, valueList({ enum: values, ...rest }));
  if (contentSchema !== undefined) return expandable('Fields', schemaTree(doc, contentSchema));
  return undefined;
}

function responseSchema(doc, operation) {
  const schema = operation.response.content?.['application/json'].schema;
  return schema === undefined ? prose(operation.response.description) : schemaTree(doc, schema);
}

function exampleResponse(operation) {
  const example = operation.response.content?.['application/json'].example;
  if (example === undefined) return undefined;
  return codeBlock('Response 200', el('code', {}, highlighted(example)), () => JSON.stringify(example, null, 2));
}
