import { codeBlock, el, foldable, highlighted, inline, prose } from './dom.js';
import { labelOf, pathPieces, resolve, typeText } from './model.js';
import { requestPanel } from './request.js';
import { mark, schemaTree, valueList } from './schema.js';

/** One operation: what it does on the left, how to call it on the right. */
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
        { className: 'explain' },
        prose(operation.description),
        facts(operation),
        parameterTable(doc, operation),
        operation.body ? part('Request body', schemaTree(doc, operation.body.schema)) : undefined,
        part('Answer', answer(doc, operation)),
      ),
      el('div', { className: 'practise' }, requestPanel(doc, operation), exampleAnswer(operation)),
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
  const heads = ['Parameter', 'Meaning'];
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
        { className: 'place' },
        `${parameter.in}, ${typeText(doc, parameter.schema)}`,
        required ? mark('required') : undefined,
      ),
    ),
    el('td', {}, prose(parameter.description), more(doc, value)),
  );
}

function more(doc, { enum: values, contentSchema, ...rest }) {
  const opened = (title, content) => el('details', { className: 'more' }, el('summary', {}, title), content);
  if (values !== undefined) return opened(`${values.length} values`, valueList({ enum: values, ...rest }));
  if (contentSchema !== undefined) return opened('Its fields', schemaTree(doc, contentSchema));
  return undefined;
}

function answer(doc, operation) {
  const schema = operation.answer.content?.['application/json'].schema;
  return schema === undefined ? prose(operation.answer.description) : schemaTree(doc, schema);
}

function exampleAnswer(operation) {
  const example = operation.answer.content?.['application/json'].example;
  if (example === undefined) return undefined;
  return codeBlock('Answer, 200', el('code', {}, highlighted(example)), () => JSON.stringify(example, null, 2));
}
