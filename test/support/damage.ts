import fc from 'fast-check';

/** What a broken disk, a merge gone wrong or an attacker could make of a text: cut, doubled, overwritten, swapped. */
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
    .map((wounds) =>
      wounds.reduce((whole, { at, length, put }) => whole.slice(0, at) + put + whole.slice(at + length), text),
    );
