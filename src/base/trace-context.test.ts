import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatTraceparent, parseTraceContext, traceHeaders } from './trace-context.ts';

const hex = (length: number) =>
  fc
    .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
    .map((digits) => digits.join(''));
const id = (length: number) => hex(length).filter((digits) => /[1-9a-f]/.test(digits));
const context = fc.record({ traceId: id(32), spanId: id(16), isSampled: fc.boolean() });

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

test('what is formatted can be parsed again', () => {
  fc.assert(
    fc.property(context, (sent) => {
      assert.deepEqual({ ...parseTraceContext(formatTraceparent(sent)) }, { ...sent, tracestate: undefined });
    }),
  );
});

test('no text breaks the parser, and what it accepts has valid ids', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.tuple(hex(2), hex(32), hex(16), hex(2), fc.string()).map((parts) => parts.join('-')),
  );
  fc.assert(
    fc.property(text, fc.option(fc.string({ unit: 'binary' }), { nil: undefined }), (traceparent, tracestate) => {
      const parsed = parseTraceContext(traceparent, tracestate);
      if (!parsed) return;
      assert.match(parsed.traceId, /^(?!0{32})[0-9a-f]{32}$/);
      assert.match(parsed.spanId, /^(?!0{16})[0-9a-f]{16}$/);
      // What is passed on is safe in a header.
      for (const value of Object.values(traceHeaders(parsed))) assert.match(value, /^[\x20-\x7e]{1,600}$/);
    }),
  );
});

test('a changed character makes another context or none', () => {
  fc.assert(
    fc.property(
      context,
      fc.nat(54),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      (sent, at, character) => {
        const text = formatTraceparent(sent);
        if (text[at] === character) return;
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        const parsed = parseTraceContext(changed);
        if (parsed) assert.equal(changed.includes(parsed.traceId) && changed.includes(parsed.spanId), true);
      },
    ),
  );
});

const invalid: Record<string, string> = {
  'upper case': `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  'a trace id of zeros': `00-${'0'.repeat(32)}-${SPAN}-01`,
  'a span id of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
  'the version ff': `ff-${TRACE}-${SPAN}-01`,
  'version 00 with another field': `00-${TRACE}-${SPAN}-01-x`,
  'a later version without a separator': `01-${TRACE}-${SPAN}-01x`,
  'two values': `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  'no flags': `00-${TRACE}-${SPAN}`,
  'a line break': `00-${TRACE}-${SPAN}-01\n-x`,
};
for (const [what, text] of Object.entries(invalid)) {
  test(`a traceparent with ${what} is ignored`, () => assert.equal(parseTraceContext(text, 'a=b'), undefined));
}

test('only the lowest bit of the flags is read, and later versions are understood', () => {
  assert.equal(parseTraceContext(`00-${TRACE}-${SPAN}-ff`)?.isSampled, true);
  assert.equal(parseTraceContext(`00-${TRACE}-${SPAN}-fe`)?.isSampled, false);
  assert.equal(parseTraceContext(`cc-${TRACE}-${SPAN}-01`)?.isSampled, true);
  assert.equal(parseTraceContext(`cc-${TRACE}-${SPAN}-01-what-the-future-brings`)?.traceId, TRACE);
});

test('a tracestate is passed on if it is valid', () => {
  const stateOf = (state: string) => parseTraceContext(`00-${TRACE}-${SPAN}-01`, state)?.tracestate;
  assert.equal(stateOf('rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'), 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE');
  assert.equal(stateOf(' a=1 , ,\tb=2'), 'a=1,b=2');
  assert.equal(stateOf('fw529a3039@dt=FfAg'), 'fw529a3039@dt=FfAg');
  for (const state of ['', 'a', 'A=1', 'a=1,a=2', 'a=\u{e9}', 'a=b=c', `a=${'x'.repeat(600)}`]) {
    assert.equal(stateOf(state), undefined, state);
  }
  assert.equal(stateOf(Array.from({ length: 33 }, (_, index) => `a${index}=1`).join(',')), undefined);
});
