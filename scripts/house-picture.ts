/** The picture of a house, drawn from its walls: which folder imports which, with importers above what they import. */
import type { House } from './walls.ts';

const BOX = { width: 132, height: 40, gapX: 16, gapY: 64, margin: 24 };
const MOST_IN_A_ROW = 7;
/** The rooms by which the picture colors others: those that make up a service, and those that import the ledger as a whole. */
const SOLD = 'service/';
const MONEY = 'ledger/';

interface Room {
  room: string;
  because: string;
  /** Folders of which it may import some files. */
  knows: readonly string[];
  /** Folders that it may import as a whole. */
  knowsAll: readonly string[];
}

/** The folders of a house; files at its top level assemble the parts, or are imported by all. */
function roomsOf(house: House): Room[] {
  const folders = house.rooms.flatMap(({ room }) => (room.endsWith('/') ? [room] : []));
  return house.rooms.flatMap(({ room, knows, because }) => {
    if (knows === null || !folders.includes(room)) return [];
    const inside = knows.flatMap((path) => folders.find((each) => path.startsWith(each)) ?? []);
    const known = [...new Set(inside)].filter((each) => each !== room);
    return [{ room, because, knows: known, knowsAll: known.filter((each) => knows.includes(each)) }];
  });
}

/** Everything that each room reaches through others. @throws Error when rooms import each other in a cycle */
function reachOf(rooms: readonly Room[]): Map<string, Set<string>> {
  const byName = new Map(rooms.map((each) => [each.room, each]));
  const done = new Map<string, Set<string>>();
  const reach = (name: string, way: readonly string[]): Set<string> => {
    if (way.includes(name)) throw new Error(`a circle: ${[...way, name].join(' knows ')}`);
    const found = done.get(name);
    if (found !== undefined) return found;
    const all = new Set<string>();
    for (const next of byName.get(name)?.knows ?? [])
      for (const each of [next, ...reach(next, [...way, name])]) all.add(each);
    done.set(name, all);
    return all;
  };
  for (const { room } of rooms) reach(room, []);
  return done;
}

/** The rows of the picture from the top: a room stands above everything that it imports. */
function rowsOf(rooms: readonly Room[]): Room[][] {
  const height = new Map<string, number>();
  const heightOf = (name: string): number => {
    const known = height.get(name);
    if (known !== undefined) return known;
    const { knows = [] } = rooms.find(({ room }) => room === name) ?? {};
    const made = Math.max(-1, ...knows.map(heightOf)) + 1;
    height.set(name, made);
    return made;
  };
  const rows: Room[][] = [];
  for (const each of rooms) {
    const at = heightOf(each.room);
    rows[at] = [...(rows[at] ?? []), each];
  }
  // A row that is too long for the page becomes two; rooms in one row do not import each other.
  return rows
    .flatMap((row) => {
      const parts = Math.ceil(row.length / MOST_IN_A_ROW);
      const each = Math.ceil(row.length / parts);
      return Array.from({ length: parts }, (_, index) => row.slice(index * each, (index + 1) * each));
    })
    .reverse();
}

/**
 * The picture as SVG; the same walls always give the same text. An arrow is left out if other arrows already lead the
 * same way.
 */
export function housePicture(house: House): string {
  const rooms = roomsOf(house);
  const reach = reachOf(rooms);
  const rows = rowsOf(rooms);
  const width = MOST_IN_A_ROW * (BOX.width + BOX.gapX) - BOX.gapX + 2 * BOX.margin;
  const heightTotal = rows.length * (BOX.height + BOX.gapY) - BOX.gapY + 2 * BOX.margin;
  const place = new Map(
    rows.flatMap((row, index) => {
      const used = row.length * (BOX.width + BOX.gapX) - BOX.gapX;
      return row.map(({ room }, at) => [
        room,
        {
          x: (width - used) / 2 + at * (BOX.width + BOX.gapX),
          y: BOX.margin + index * (BOX.height + BOX.gapY),
        },
      ]);
    }),
  );
  const at = (name: string) => place.get(name) ?? { x: 0, y: 0 };
  const sold = new Set([SOLD, ...(reach.get(SOLD) ?? [])]);
  const kindOf = ({ room, knowsAll }: Room) =>
    sold.has(room) ? 'sold' : room === MONEY || knowsAll.includes(MONEY) ? 'money' : 'plain';
  const arrows = rooms.flatMap(({ room, knows }) =>
    knows
      .filter((to) => !knows.some((over) => over !== to && reach.get(over)?.has(to) === true))
      .map((to) => {
        const [from, down] = [at(room), at(to)];
        const [x, y] = [from.x + BOX.width / 2, from.y + BOX.height];
        const [toX, toY] = [down.x + BOX.width / 2, down.y];
        const bend = (toY - y) / 2;
        return `  <path class="arrow" d="M${x} ${y}C${x} ${y + bend} ${toX} ${toY - bend} ${toX} ${toY}"><title>${room} knows ${to}</title></path>`;
      }),
  );
  const boxes = rooms.map((each) => {
    const { x, y } = at(each.room);
    return [
      `  <g class="${kindOf(each)}"><title>${each.room} ${each.because}</title>`,
      `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6"/>`,
      `<text x="${x + BOX.width / 2}" y="${y + BOX.height / 2 + 5}">${each.room}</text></g>`,
    ].join('');
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${heightTotal}" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="14">`,
    '  <title id="t">The parts of the fare box, and which knows which</title>',
    `  <desc id="d">${rooms.map(({ room, knows }) => `${room} knows ${knows.length === 0 ? 'no other' : knows.join(', ')}.`).join(' ')}</desc>`,
    STYLE,
    `  <rect class="page" width="${width}" height="${heightTotal}" rx="12"/>`,
    ...arrows,
    ...boxes,
    '</svg>',
  ].join('\n')}\n`;
}

const STYLE = `  <style>
    .page { fill: #fbfaf6 }
    .plain rect { fill: #ffffff; stroke: #8b877c }
    .sold rect { fill: #e4f0ea; stroke: #0b6b4b }
    .money rect { fill: #fbf0d9; stroke: #9a6a00 }
    .arrow { fill: none; stroke: #55524a; stroke-width: 1.2; opacity: .75; marker-end: url(#head) }
    .tip { fill: #55524a }
    text { fill: #1d1c19; text-anchor: middle; font-weight: 600 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #16181a }
      .plain rect { fill: #212427; stroke: #7d8288 }
      .sold rect { fill: #153328; stroke: #56b890 }
      .money rect { fill: #3a2f16; stroke: #d8a94a }
      .arrow { stroke: #b3b8bd }
      .tip { fill: #b3b8bd }
      text { fill: #eef0f1 }
    }
  </style>
  <defs>
    <marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
      <path class="tip" d="M0 0 10 5 0 10z"/>
    </marker>
  </defs>`;
