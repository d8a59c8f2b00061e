/** How two costs in microseconds grow with a number. */
export interface GrowthCurve {
  /** What the x axis counts, such as repos. */
  readonly of: string;
  readonly points: readonly { readonly x: number; readonly decision: number; readonly page: number }[];
}

const SIZE = { width: 340, height: 210, left: 52, bottom: 34, top: 34, right: 30 };
const LEGEND = 26;
const COLOURS = { page: '#1f6feb', decision: '#d1242f' } as const;

/** Draws charts side by side as SVG. Both axes are logarithmic, so a cost that does not grow is a flat line. */
export function plot(curves: readonly GrowthCurve[]): string {
  const values = curves.flatMap(({ points }) => points.flatMap(({ decision, page }) => [decision, page]));
  const range: [number, number] = [
    Math.floor(Math.log10(Math.min(...values))),
    Math.ceil(Math.log10(Math.max(...values))),
  ];
  const charts = curves.map((curve, at) =>
    chart(curve, (at % 2) * SIZE.width, LEGEND + Math.floor(at / 2) * SIZE.height, range),
  );
  const height = Math.ceil(curves.length / 2) * SIZE.height + LEGEND;
  const name = (cost: keyof typeof COLOURS, text: string) => `<tspan fill="${COLOURS[cost]}">${text}</tspan>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * SIZE.width} ${height}" font-family="sans-serif" font-size="10">
<title>Microseconds by number of ${curves.map(({ of }) => of).join(', ')}</title>
<rect width="100%" height="100%" fill="white"/>
<text x="${SIZE.left}" y="16" font-size="12">Microseconds of processor time for ${name('page', 'a page of 50 by name')} and for ${name('decision', 'a permission decision')}, by number of</text>
${charts.join('\n')}
</svg>
`;
}

function chart({ of, points }: GrowthCurve, left: number, top: number, [low, high]: [number, number]): string {
  const xs = points.map(({ x }) => Math.log10(x));
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const inner = { width: SIZE.width - SIZE.left - SIZE.right, height: SIZE.height - SIZE.top - SIZE.bottom };
  const atX = (x: number): number => left + SIZE.left + ((Math.log10(x) - first) / (last - first || 1)) * inner.width;
  const atY = (y: number): number => top + SIZE.top + (1 - (Math.log10(y) - low) / (high - low)) * inner.height;
  const decades = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  const lines = (['page', 'decision'] as const).map((cost) => {
    const dotPositions = points.map((point) => ({ x: px(atX(point.x)), y: px(atY(point[cost])), value: point[cost] }));
    const path = dotPositions.map(({ x, y }) => `${x},${y}`).join(' ');
    const dots = dotPositions.map(
      ({ x, y, value }) =>
        `<circle cx="${x}" cy="${y}" r="3" fill="${COLOURS[cost]}"/><text x="${x}" y="${y - 7}" text-anchor="middle" fill="${COLOURS[cost]}">${figure(value)}</text>`,
    );
    return `<polyline points="${path}" fill="none" stroke="${COLOURS[cost]}" stroke-width="2"/>${dots.join('')}`;
  });
  return [
    `<text x="${left + SIZE.left}" y="${top + 16}" font-weight="bold">${of}</text>`,
    ...decades.map(
      (y) =>
        `<line x1="${left + SIZE.left}" x2="${left + SIZE.width - SIZE.right}" y1="${px(atY(y))}" y2="${px(atY(y))}" stroke="#ddd"/><text x="${left + SIZE.left - 12}" y="${px(atY(y)) + 3}" text-anchor="end" fill="#666">${figure(y)}</text>`,
    ),
    ...points.map(
      ({ x }) =>
        `<text x="${px(atX(x))}" y="${top + SIZE.height - 16}" text-anchor="middle" fill="#666">${figure(x)}</text>`,
    ),
    ...lines,
  ].join('\n');
}

/** Rounds to tenths of a pixel. */
const px = (value: number): number => Math.round(value * 10) / 10;

const figure = (value: number): string =>
  value < 10 ? value.toPrecision(2).replace(/\.0$/, '') : Math.round(value).toLocaleString('en');
