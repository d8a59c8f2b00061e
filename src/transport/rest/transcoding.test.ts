import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescFile, DescMessage, Message } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { assertCheap } from '../../base/cpu-time.testing.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { methods } from '../../contract/contract.testing.ts';
import { arbitraryMessage } from '../../contract/json/arbitrary-message.testing.ts';
import { messageReader } from '../../contract/json/decode.ts';
import { encodeJson } from '../../contract/json/encode.ts';
import { collectViolations } from '../../contract/json/violations.ts';
import { files } from '../../contract/method-table.ts';
import { statusJson } from '../error-status.ts';
import { requestReader, takesForm } from './read-request.ts';
import { createRouter } from './router.ts';

// Fixed, so that a failure can be reproduced.
const seed = 20_260_101;

const messagesOf = (scope: DescFile | DescMessage): DescMessage[] =>
  (scope.kind === 'file' ? scope.messages : scope.nestedMessages).flatMap((desc) => [desc, ...messagesOf(desc)]);

/** Only responses have fields of any type, so no reader knows them. */
const hasValues = (desc: DescMessage): boolean =>
  desc.fields.some(
    ({ message }) =>
      message &&
      message !== desc &&
      (message.typeName === ValueSchema.typeName || (isOwn(message) && hasValues(message))),
  );
const isOwn = ({ typeName }: DescMessage): boolean => !typeName.startsWith('google.protobuf.');

function decode(desc: DescMessage, json: unknown): Message | undefined {
  const problems = collectViolations();
  const message = messageReader(desc)(json, '', problems);
  problems.check();
  return message;
}

test('every message of the contract is the same after it was encoded and decoded', () => {
  const descs = files.flatMap(messagesOf).filter((desc) => !hasValues(desc));
  assert.ok(descs.length > 150);
  for (const desc of descs) {
    fc.assert(
      fc.property(arbitraryMessage(desc), (message) => {
        assert.deepEqual(decode(desc, JSON.parse(encodeJson(desc, message))), message);
      }),
      { seed, numRuns: 25 },
    );
  }
});

const router = createRouter(methods);
const readers = new Map(
  methods.flatMap((method) => method.routes.map((route) => [route, requestReader(method, route)])),
);
const routes = methods.flatMap((method) => method.routes.map((route) => ({ route, input: method.desc.input })));

const hostileText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ maxLength: 20 }),
  fc.constantFrom(
    '',
    '.',
    '..',
    '%',
    '%2',
    '%zz',
    '%00',
    '%2F',
    '%2e%2e',
    '%ff',
    '%c3%28',
    '%ed%a0%80',
    '\0',
    '\n',
    '//',
    ':',
    ':lookupGroup',
    '__proto__',
    'constructor',
    'toString',
    '[0]',
    '[99999999999]',
    'null',
    'true',
    '-0',
    '1e400',
    'NaN',
    '0x10',
    '9'.repeat(400),
    '9999-99-99T99:99:99Z',
    '-999999999999s',
    '*',
    "' OR 1=1 --",
    '{"repo":1}',
    '[{}]',
    '{'.repeat(50),
    'a'.repeat(5000),
  ),
);

const names = [
  ...new Set(files.flatMap(messagesOf).flatMap((desc) => desc.fields.flatMap((f) => [f.name, f.jsonName]))),
];
const parameterName = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      'uidp',
      'page_size',
      'pageSize',
      'name',
      'update_mask',
      'imageRefs[0].repo',
      'image_refs',
      'uidp.ids',
      'ecosystems',
    ),
  },
  {
    weight: 2,
    arbitrary: fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('.')),
  },
  { weight: 1, arbitrary: hostileText },
);
const raw = (text: fc.Arbitrary<string>) =>
  fc.oneof(
    text,
    text.map((value) => encodeURIComponent(value.toWellFormed())),
  );
const query = fc
  .array(fc.tuple(raw(parameterName), raw(fc.oneof(hostileText, fc.integer().map(String)))), { maxLength: 5 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));

/** JSON with the names of real fields and any values, so that it passes the check for unknown fields. */
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      hostileText,
      fc.integer(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom(2 ** 31, 2 ** 53, -1),
    ),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fc.constantFrom(...names), hostileText), tie('tree'), { maxKeys: 4 }),
  ),
}));
const mutated = (desc: DescMessage) =>
  fc.tuple(arbitraryMessage(desc), fc.constantFrom(...names), tree).map(([message, name, value]) => ({
    ...JSON.parse(encodeJson(desc, message)),
    [name]: value,
  }));
const bodyText = (desc: DescMessage) =>
  fc.oneof(
    mutated(desc).map((json) => JSON.stringify(json)),
    tree.map((json) => JSON.stringify(json) ?? ''),
    hostileText,
  );

interface HttpRequest {
  readonly verb: string;
  readonly path: string;
  readonly query: string;
  readonly body: string | undefined;
}

const request: fc.Arbitrary<HttpRequest> = fc.constantFrom(...routes).chain(({ route, input }) => {
  const resource = input.fields.find(({ name }) => name === route.body)?.message ?? input;
  const values = fc.array(raw(fc.oneof(hostileText, fc.constant('a/b'))), { minLength: 2, maxLength: 2 });
  return fc.record({
    verb: fc.oneof(
      { weight: 9, arbitrary: fc.constant(route.verb) },
      { weight: 1, arbitrary: fc.constantFrom('GET', 'POST', 'TRACE') },
    ),
    path: fc.oneof(
      { weight: 9, arbitrary: values.map((parts) => route.template.replace(/\{.*?\}/g, () => parts.pop() ?? '')) },
      { weight: 1, arbitrary: hostileText.map((text) => `/${text}`) },
    ),
    query: fc.oneof(query, hostileText, fc.constant('')),
    body: fc.option(bodyText(resource), { nil: undefined }),
  });
});

test('any HTTP request becomes a request message, INVALID_ARGUMENT, 404 or 405', { timeout: 60_000 }, () => {
  const outcomes = { request: 0, invalid: 0, 'no match': 0, 'verb not allowed': 0 };

  function outcomeOf({ verb, path, query, body }: HttpRequest): keyof typeof outcomes {
    try {
      const match = router(verb, path);
      if (match.kind !== 'match') return match.kind;
      const type = takesForm(match.route) ? 'form' : 'json';
      const { input } = match.method.desc;
      const message = readers.get(match.route)?.({
        variables: match.variables,
        query,
        body: body === undefined ? body : { type, text: body },
      }) as Message | undefined;
      assert.equal(message?.$typeName, input.typeName);
      encodeJson(input, message);
      return 'request';
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      assert.equal(error.code, Code.INVALID_ARGUMENT);
      const text = JSON.stringify(statusJson(error, { domain: 'iam', serviceDomain: 'x', requestId: 'y' }));
      assert.ok(text.length < 20_000, `an error of ${text.length} characters`);
      return 'invalid';
    }
  }

  fc.assert(
    fc.property(request, (sent) =>
      assertCheap(() => {
        outcomes[outcomeOf(sent)] += 1;
      }, 'one request'),
    ),
    { seed, numRuns: 10_000 },
  );
  // The generator must reach every outcome often.
  for (const [kind, count] of Object.entries(outcomes)) assert.ok(count > 100, `${kind}: ${count}`);
});
