import fc from 'fast-check';

/** Generates damaged copies of a text: parts are removed, overwritten, repeated, or the end is cut off. */
export const damagedText = (text: string): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        fc.record({ at: fc.nat(text.length), length: fc.nat(40), put: fc.constant('') }),
        fc.record({ at: fc.nat(text.length), length: fc.nat(3), put: fc.string({ unit: 'binary', maxLength: 5 }) }),
        fc.record({
          at: fc.nat(text.length),
          length: fc.nat(8),
          put: fc.constantFrom(
            '{',
            '}',
            '[',
            ']',
            '"',
            ':',
            ',',
            '\n',
            '  ',
            '- ',
            '&a ',
            '*a',
            '|',
            '\ufeff',
            'null',
            '0',
          ),
        }),
        fc
          .record({ at: fc.nat(text.length), from: fc.nat(text.length), length: fc.nat(200) })
          .map(({ at, from, length }) => ({ at, length: 0, put: text.slice(from, from + length) })),
        fc.nat(text.length).map((at) => ({ at, length: text.length, put: '' })),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((edits) =>
      edits.reduce((whole, { at, length, put }) => whole.slice(0, at) + put + whole.slice(at + length), text),
    );
