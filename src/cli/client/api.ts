import type { DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Method, Route } from '../../contract/method.ts';
import { files, methodTable } from '../../contract/method-table.ts';
import { misused } from '../exit-codes.ts';
import { apiError } from './api-error.ts';
import { type HttpRequest, send } from './http.ts';
import { parseObject } from './json.ts';

type Fields = Readonly<Record<string, JsonValue | readonly string[] | undefined>>;

/** A request, taken apart as HTTP carries it. */
export interface Parts {
  /** For the variables of the route, in their order. */
  readonly path?: readonly string[];
  /** Query parameters, or form values where the route takes those. */
  readonly fields?: Fields;
  readonly body?: JsonObject;
  /** Instead of the usual one. */
  readonly token?: string;
  /** Gets the headers of a good answer. */
  readonly hear?: (headers: Headers) => void;
}

/** Calls any method of the contract over REST. */
export interface Api {
  call(method: DescMethod, parts?: Parts): Promise<JsonObject>;
}

export interface ApiOptions {
  readonly server: string;
  readonly ca: string | undefined;
  /** The usual token; asked for only by methods that need one. */
  readonly token?: () => Promise<string>;
  readonly patienceMs?: number;
}

const table = new Map(methodTable(files).map((method) => [method.id, method]));

export function rowOf(desc: DescMethod): Method & { readonly route: Route } {
  const method = table.get(`${desc.parent.typeName}/${desc.name}`);
  const route = method?.routes[0];
  if (method === undefined || route === undefined) throw new Error(`${desc.name} is not in the method table`);
  return { ...method, route };
}

export function createApi({ server, ca, token, patienceMs }: ApiOptions): Api {
  return {
    async call(desc, parts = {}) {
      const { route, access } = rowOf(desc);
      const request = encode(route, parts);
      const bearer = parts.token ?? (access === 'public' ? undefined : await token?.());
      const headers = { ...request.headers, ...(bearer !== undefined && { authorization: authorization(bearer) }) };
      const answer = await send({ server, ca, ...request, headers, ...(patienceMs && { patienceMs }) });
      if (answer.status !== 200) throw apiError(server, answer);
      parts.hear?.(answer.headers);
      // An answer without a body, as to a deletion, is an empty message.
      return parseObject(answer.text || '{}') ?? Promise.reject(apiError(server, answer));
    },
  };
}

function authorization(token: string): string {
  if (!/^[\x21-\x7e]+$/.test(token)) throw misused('the token is not one word of plain characters: is it complete?');
  return `Bearer ${token}`;
}

function encode(route: Route, { path = [], fields = {}, body }: Parts): Omit<HttpRequest, 'server'> {
  const values = path.values();
  const target = route.template.replace(/\{[^}]*\}/g, (variable) => {
    const path = segments(values.next().value ?? '');
    return variable.endsWith('=**}') ? path : path.replaceAll('/', '%2F');
  });
  const parameters = parametersOf(fields);
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

/** A uid travels with its slashes, wherever a route has room for them. Dots would climb out of the path that is meant, however they are written. */
function segments(value: string): string {
  const parts = value.split('/');
  if (parts.some((part) => part === '.' || part === '..' || (part === '' && parts.length > 1))) {
    throw misused(`${JSON.stringify(value)} is not a uid`);
  }
  return parts.map(encodeURIComponent).join('/');
}

function parametersOf(fields: Fields): string {
  const parameters = new URLSearchParams();
  for (const [name, value = []] of Object.entries(fields)) {
    for (const one of [value].flat()) {
      parameters.append(name, typeof one === 'object' ? JSON.stringify(one) : String(one));
    }
  }
  return parameters.toString();
}
