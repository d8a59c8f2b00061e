/** Computes the content of the page from the OpenAPI document, without the DOM. */

const VERBS = ['get', 'post', 'put', 'patch', 'delete'];

/** The domains of the document, with their services and operations. */
export function buildCatalog(doc) {
  const operations = Object.entries(doc.paths).flatMap(([path, item]) =>
    VERBS.filter((verb) => item[verb]).map((verb) => toOperation(path, verb, item[verb])),
  );
  const services = doc.tags.map((tag) => ({
    id: tag.name,
    title: tag['x-displayName'],
    description: tag.description,
    operations: operations.filter((operation) => operation.tags.includes(tag.name)),
  }));
  return doc['x-tagGroups'].map(({ name, tags }) => ({
    title: name,
    services: services.filter((service) => tags.includes(service.id)),
  }));
}

function toOperation(path, verb, operation) {
  const paragraphs = operation.description.split('\n\n');
  const event = operation['x-wharf-event'] === undefined ? undefined : paragraphs.pop();
  const access = paragraphs.pop();
  return {
    ...operation,
    id: operation.operationId,
    title: titleOf(operation['x-wharf-grpc-method']),
    verb: verb.toUpperCase(),
    path,
    template: operation['x-wharf-path-template'],
    description: `${operation.summary}. ${paragraphs.join('\n\n')}`,
    access,
    event,
    isPublic: operation.security !== undefined,
    body: operation.requestBody?.content['application/json'],
    response: operation.responses[200],
  };
}

/** `Create group` for `…GroupsService/CreateGroup`. */
function titleOf(method) {
  const [first, ...rest] = method.slice(method.lastIndexOf('/') + 1).split(/(?=[A-Z])/);
  return [first, ...rest.map((word) => word.toLowerCase())].join(' ');
}

/**
 * The name of a parameter in the contract, such as `parent`. In OpenAPI, all methods of a path share the names of its
 * variables.
 */
export const labelOf = ({ name, 'x-wharf-field': field }) => field?.split('.').at(-1) ?? name;

/** Splits the path at its variables: `['/iam/v2/groups/', { variable: 'uid' }]`. */
export function pathPieces(operation) {
  const labels = new Map(operation.parameters.map((parameter) => [parameter.name, labelOf(parameter)]));
  return operation.path
    .split(/(\{[^}]+\})/)
    .filter((piece) => piece !== '')
    .map((piece) => (piece.startsWith('{') ? { variable: labels.get(piece.slice(1, -1)) } : piece));
}

/** Whether every word of the filter occurs in the names, the path or the capabilities of the operation. */
export function matches(operation, service, filter) {
  const text = [
    operation.verb,
    operation.template,
    operation.summary,
    operation.id,
    service.title,
    ...operation['x-wharf-capabilities'],
  ]
    .join(' ')
    .toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Follows references and merges `allOf`. Keywords next to a reference override it. */
export function resolve(doc, schema) {
  const { $ref, allOf = [], ...own } = schema;
  const parts = [...allOf];
  if ($ref !== undefined) {
    const target = $ref
      .slice(2)
      .split('/')
      .reduce((at, key) => at[key], doc);
    parts.unshift(target);
  }
  const merged = parts.map((part) => resolve(doc, part));
  const required = [...merged, own].flatMap((part) => part.required ?? []);
  return Object.assign({}, ...merged, own, required.length > 0 ? { required } : {});
}

/** A short name of the type, such as `Group`, `list of string` or `timestamp`. */
export function typeText(doc, schema) {
  if (schema.items !== undefined) return `list of ${typeText(doc, schema.items)}`;
  if (schema.additionalProperties !== undefined) return `map of ${typeText(doc, schema.additionalProperties)}`;
  if (schema.contentSchema !== undefined) return `${typeText(doc, schema.contentSchema)} as JSON`;
  if (schema.$ref !== undefined)
    return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1).replace(/^.*\.v\d+\w*\./, '');
  if (schema.format === 'date-time') return 'timestamp';
  if (schema.contentEncoding === 'base64') return 'base64';
  return schema.format ?? schema.type ?? 'object';
}

/** The schema of the elements for lists and maps, otherwise the schema itself. */
export function innermost(doc, schema) {
  const inner = schema.items ?? schema.additionalProperties;
  return inner === undefined ? resolve(doc, schema) : innermost(doc, inner);
}

/** Whether commas separate the values of a parameter. In a list of JSON texts they do not. */
export const isPlainList = ({ items }) => items !== undefined && items.contentSchema === undefined;

/** Path and query for the entered values, by parameter name. Empty values are not sent. */
export function requestTarget(operation, values) {
  const query = new URLSearchParams();
  let path = operation.path;
  for (const parameter of operation.parameters) {
    const value = values[parameter.name] ?? '';
    if (parameter.in === 'path') {
      const encoded = encodeURIComponent(value);
      const sent = parameter['x-wharf-slashes'] ? encoded.replaceAll('%2F', '/') : encoded;
      path = value === '' ? path.replace(`/{${parameter.name}}`, '') : path.replace(`{${parameter.name}}`, () => sent);
    } else if (value !== '') {
      const items = isPlainList(parameter.schema) ? value.split(',') : [value];
      for (const item of items) query.append(parameter.name, item.trim());
    }
  }
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

/**
 * The curl command of a request, with examples for missing required values. The token is a shell variable, so that the
 * command can be shared.
 */
export function curlCommand(server, operation, values, body) {
  const missing = operation.parameters.filter(
    (parameter) => parameter.required && !parameter['x-wharf-optional'] && !values[parameter.name],
  );
  const examples = Object.fromEntries(missing.map(({ name, example }) => [name, [example].flat().join(',')]));
  const target = requestTarget(operation, { ...values, ...examples });
  const verb = operation.verb === 'GET' ? '' : `-X ${operation.verb} `;
  const lines = [`curl ${verb}${quoted(server + target)}`];
  if (!operation.isPublic) lines.push('-H "Authorization: Bearer $TOKEN"');
  if (body !== undefined) lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(body)}`);
  return lines.join(' \\\n  ');
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
