import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ForwardedElement, parseForwarded } from './forwarded.ts';

test('the examples of RFC 7239 are parsed', () => {
  for (const [header, expected] of [
    ['for="_gazonk"', [{ for: '_gazonk' }]],
    ['For="[2001:db8:cafe::17]:4711"', [{ for: '[2001:db8:cafe::17]:4711' }]],
    ['for=192.0.2.60;proto=http;by=203.0.113.43', [{ for: '192.0.2.60', proto: 'http', by: '203.0.113.43' }]],
    ['for=192.0.2.43, for=198.51.100.17', [{ for: '192.0.2.43' }, { for: '198.51.100.17' }]],
    ['for=_hidden, for=_SEVKISEK', [{ for: '_hidden' }, { for: '_SEVKISEK' }]],
    [
      'for=192.0.2.43,for="[2001:db8:cafe::17]",for=unknown',
      [{ for: '192.0.2.43' }, { for: '[2001:db8:cafe::17]' }, { for: 'unknown' }],
    ],
    ['host="wharf.example:8443";PROTO=https', [{ host: 'wharf.example:8443', proto: 'https' }]],
    ['for="a\\"b\\\\c"', [{ for: 'a"b\\c' }]],
    ['for="a, b; c=d"', [{ for: 'a, b; c=d' }]],
    [';for=a;;host=b; ,,\t, for=c ', [{ for: 'a', host: 'b' }, { for: 'c' }]],
    ['', []],
  ] as const) {
    assert.deepEqual(parseForwarded(header), expected, header);
  }
});

test('anything else is refused as a whole', () => {
  for (const header of [
    'for',
    'for=',
    'for =a',
    'for= a',
    'for=a b',
    'for="a',
    'for="a\\"',
    'for=[::1]',
    'for=1.2.3.4:80',
    'for=a;for=b',
    'for=a;FOR=b',
    'for="a"b',
    'for="a\nb"',
    '=a',
    'for=ä',
  ]) {
    assert.equal(parseForwarded(header), undefined, header);
  }
});

const quote = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`;
const value = fc.stringMatching(/^[\t -~]*$/);
const element = fc.record({ for: value, host: value, proto: value }, { requiredKeys: ['for'] });
const separator = fc.constantFrom(',', ', ', ' ,\t', ',,');

test('what is written is what is read', () => {
  const write = (one: ForwardedElement): string =>
    Object.entries(one)
      .map(([name, text]) => `${name}=${quote(text)}`)
      .join(';');
  fc.assert(
    fc.property(fc.array(element), separator, (elements, comma) => {
      assert.deepEqual(
        parseForwarded(elements.map(write).join(comma)),
        elements.map((one) => ({ ...one })),
      );
    }),
  );
});

test('whatever a client sends, an element that a proxy appends is the last, or all is refused', () => {
  const sent = fc.oneof(fc.string(), fc.stringMatching(/^[a-z=";,\\ [\]0-9]*$/));
  fc.assert(
    fc.property(sent, (text) => {
      const elements = parseForwarded(`${text}, for=192.0.2.1;proto=https`);
      if (elements) assert.deepEqual(elements.at(-1), { for: '192.0.2.1', proto: 'https' });
    }),
    { numRuns: 1000 },
  );
});
