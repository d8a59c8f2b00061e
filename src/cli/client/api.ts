import type { DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Method, Route } from '../../contract/method.ts';
import { files, methodTable } from '../../contract/method-table.ts';
import { usageError } from '../exit-codes.ts';
import type { Terminal } from '../output/terminal.ts';
import { apiError } from './api-error.ts';
import type { HttpRequest } from './http.ts';
import { parseJsonObject } from './json.ts';
import { sendWithRetries } from './retry-after.ts';

type Fields = Readonly<Record<string, JsonValue | readonly string[] | undefined>>;

/** The parts of a request, by where HTTP carries them. */
export interface ApiRequest {
  /** The values of the route's variables, in their order. */
  readonly path?: readonly string[];
  /** Query parameters, or form values for a POST without a body in the contract. */
  readonly fields?: Fields;
  readonly body?: JsonObject;
  /** Overrides the token of the client. */
  readonly token?: string;
  /** Receives the headers of a successful response. */
  readonly onHeaders?: (headers: Headers) => void;
}

/** Calls any method of the contract over REST. */
export interface Api {
  call(method: DescMethod, request?: ApiRequest): Promise<JsonObject>;
}

export interface ApiOptions {
  readonly server: string;
  readonly ca: string | undefined;
  /** Returns the token. Called only for methods that need one. */
  readonly token?: () => Promise<string>;
  readonly timeoutMs?: number;
  /** Where to say that the server is busy. */
  readonly terminal?: Pick<Terminal, 'err'>;
}

const table = new Map(methodTable(files).map((method) => [method.id, method]));

export type RoutedMethod = Method & { readonly route: Route };

/** Returns a method with its first route. */
export function routedMethod(desc: DescMethod): RoutedMethod {
  const method = table.get(`${desc.parent.typeName}/${desc.name}`);
  const route = method?.routes[0];
  if (method === undefined || route === undefined) throw new Error(`${desc.name} is not in the method table`);
  return { ...method, route };
}

export function createApi({ server, ca, token, timeoutMs, terminal }: ApiOptions): Api {
  return {
    async call(desc, request = {}) {
      const { route, access } = routedMethod(desc);
      const encoded = encodeRequest(route, request);
      const bearer = request.token ?? (access === 'public' ? undefined : await token?.());
      const headers = { ...encoded.headers, ...(bearer !== undefined && { authorization: authorization(bearer) }) };
      const outgoing = { server, ca, ...encoded, headers, ...(timeoutMs && { timeoutMs }) };
      const response = await sendWithRetries(outgoing, (text) => terminal?.err(text));
      if (response.status !== 200) throw apiError(server, response);
      request.onHeaders?.(response.headers);
      // A response without a body, as to a deletion, is an empty message.
      return parseJsonObject(response.text || '{}') ?? Promise.reject(apiError(server, response));
    },
  };
}

function authorization(token: string): string {
  if (!/^[\x21-\x7e]+$/.test(token))
    throw usageError('the token contains spaces or characters that are not ASCII: check that it is complete');
  return `Bearer ${token}`;
}

function encodeRequest(route: Route, { path = [], fields = {}, body }: ApiRequest): Omit<HttpRequest, 'server'> {
  const values = path.values();
  const target = route.template.replace(/\{[^}]*\}/g, (variable) => {
    const value = encodePathValue(values.next().value ?? '');
    return variable.endsWith('=**}') ? value : value.replaceAll('/', '%2F');
  });
  const parameters = encodeParameters(fields);
  const { verb } = route;
  if (route.body !== undefined) {
    const headers = { 'content-type': 'application/json' };
    return { verb, path: withQuery(target, parameters), headers, body: JSON.stringify(body ?? {}) };
  }
  if (verb !== 'POST') return { verb, path: withQuery(target, parameters) };
  // Without a body in the contract, a POST carries its fields as a form (behaviour of existing clients).
  return { verb, path: target, headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: parameters };
}

const withQuery = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`);

/**
 * Encodes a path value and keeps its slashes, which a uid has. Refuses the segments `.` and `..`: URL parsers resolve
 * them even in percent-encoding, so the request would go to another path.
 */
function encodePathValue(value: string): string {
  const parts = value.split('/');
  if (parts.some((part) => part === '.' || part === '..' || (part === '' && parts.length > 1))) {
    throw usageError(`${JSON.stringify(value)} is not a uid`);
  }
  return parts.map(encodeURIComponent).join('/');
}

function encodeParameters(fields: Fields): string {
  const parameters = new URLSearchParams();
  for (const [name, value = []] of Object.entries(fields)) {
    for (const one of [value].flat()) {
      parameters.append(name, typeof one === 'object' ? JSON.stringify(one) : String(one));
    }
  }
  return parameters.toString();
}
