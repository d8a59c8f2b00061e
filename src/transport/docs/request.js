import { announce, codeBlock, el, highlighted, withPrefix } from './dom.js';
import { curlCommand, isPlainList, labelOf, requestTarget, resolve } from './model.js';
import { badge } from './schema.js';

/** The token that the user entered. It is in memory only, and lost when the page is closed. */
let token = '';

/** The request of an operation: the curl command, a form that changes it, and the response. */
export function requestPanel(doc, operation) {
  const values = {};
  let body = operation.body === undefined ? undefined : JSON.stringify(operation.body.example, null, 2);

  const line = el('code');
  const curl = () => curlCommand(doc.servers[0].url, operation, values, body);
  const refresh = () => {
    line.textContent = curl();
  };
  refresh();

  const output = el('div', { className: 'output' });
  const form = el('form', { className: 'try', autocomplete: 'off' });
  const submit = el(
    'button',
    { type: 'submit', className: `send ${operation.verb.toLowerCase()}` },
    `Send ${operation.verb}`,
  );
  form.append(
    ...(operation.isPublic ? [] : [tokenField()]),
    ...operation.parameters.map((parameter) =>
      parameterField(doc, operation, parameter, (value) => {
        values[parameter.name] = value;
        refresh();
      }),
    ),
    ...(body === undefined
      ? []
      : [
          bodyField(operation, body, (value) => {
            body = value;
            refresh();
          }),
        ]),
    submit,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    output.replaceChildren(el('p', { className: 'muted' }, 'Waiting for the response…'));
    output.replaceChildren(...(await send(operation, requestTarget(operation, values), body)));
    submit.disabled = false;
  });

  return [
    codeBlock('Request', line, curl),
    el('details', { className: 'panel' }, el('summary', {}, 'Try it'), form, output),
  ];
}

async function send(operation, target, body) {
  const headers = new Headers();
  if (token !== '' && !operation.isPublic) headers.set('authorization', `Bearer ${token}`);
  if (body !== undefined) headers.set('content-type', 'application/json');
  const start = performance.now();
  try {
    const response = await fetch(withPrefix(target), { method: operation.verb, headers, body, credentials: 'omit' });
    const text = await response.text();
    const time = `${Math.round(performance.now() - start)} ms`;
    announce(`Response: ${response.status}`);
    return [
      el(
        'p',
        { className: `status ${response.ok ? 'ok' : 'error'}` },
        el('strong', {}, String(response.status)),
        ` ${response.statusText}`,
        el('span', { className: 'muted' }, time),
      ),
      text === '' ? el('p', { className: 'muted' }, 'No body.') : codeBlock('Response', readable(text), () => text),
    ];
  } catch (error) {
    announce('The request failed');
    return [el('p', { className: 'status error' }, `No response: ${error.message}`)];
  }
}

function readable(text) {
  try {
    return el('code', {}, highlighted(JSON.parse(text)));
  } catch {
    return el('code', {}, text);
  }
}

function labelled(id, label, required, control) {
  return el(
    'div',
    { className: 'field' },
    el('label', { htmlFor: id }, label, required ? badge('required') : undefined),
    control,
  );
}

function tokenField() {
  const id = `token-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
  const input = el('input', {
    id,
    type: 'password',
    value: token,
    placeholder: 'Not stored by this page',
    autocomplete: 'off',
  });
  input.addEventListener('focus', () => {
    input.value = token;
  });
  input.addEventListener('input', () => {
    token = input.value.trim().replace(/^bearer\s+/i, '');
  });
  return labelled(id, 'Bearer token', false, input);
}

function parameterField(doc, operation, parameter, change) {
  const id = `${operation.id}.${parameter.name}`;
  const schema = resolve(doc, parameter.schema);
  const options = schema.type === 'boolean' ? ['true', 'false'] : schema.enum;
  const required = parameter.required === true && !parameter['x-wharf-optional'];
  const control =
    options === undefined
      ? el('input', { id, required, placeholder: hintFor(schema, parameter), spellcheck: false, autocomplete: 'off' })
      : el(
          'select',
          { id, required },
          el('option', { value: '' }, ''),
          options.map((option) => el('option', {}, option)),
        );
  control.addEventListener('input', () => change(control.value.trim()));
  return labelled(id, labelOf(parameter), required, control);
}

function hintFor(schema, { example }) {
  if (isPlainList(schema)) return 'one or more, separated by commas';
  return String(example ?? schema.default ?? '');
}

function bodyField(operation, body, change) {
  const id = `${operation.id}.body`;
  const area = el('textarea', { id, value: body, rows: Math.min(body.split('\n').length + 1, 16), spellcheck: false });
  area.addEventListener('input', () => change(area.value));
  return labelled(id, 'Body', false, area);
}
