/** The walls of scripts/walls.ts as rules, and what holds for all rooms alike. */
// It reads TypeScript with this package, and without it would look at nothing and find no fault.
require('@swc/core');
const { HOUSES, SHOP, floorOf, patternOf } = require('./scripts/walls.ts');

const OF_THE_SERVER = '^(apps/shop|packages/(core|catalogue|yield|proxy))/src/';
const OURS = '^(apps|packages|bench|scripts|examples|contracts)/';

const rooms = HOUSES.flatMap((house) => house.rooms.map((wall) => ({ ...wall, house })));

module.exports = {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'Modules that need each other are one module.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'leads-nowhere',
      comment: 'An import must resolve.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'has-no-walls',
      comment: 'A folder without a row in scripts/walls.ts may know nothing of ours, itself included.',
      severity: 'error',
      from: {
        path: OURS,
        pathNot: ['/node_modules/', ...rooms.map(({ house, room }) => patternOf(house, room))],
      },
      to: { path: OURS, pathNot: '/node_modules/' },
    },
    ...rooms
      .filter(({ knows }) => knows !== null)
      .map(({ house, room, knows, because }) => ({
        name: house.root + room,
        comment: because,
        severity: 'error',
        from: { path: patternOf(house, room) },
        to: {
          path: OURS,
          pathNot: [
            '/node_modules/',
            ...[room, ...knows, ...floorOf(house, room)].map((path) => patternOf(house, path)),
          ],
        },
      })),
    {
      name: 'nobody-reaches-inside',
      comment:
        'The files of a folder `inside/` serve the folder around it; others import the files beside it.',
      severity: 'error',
      from: { path: '^(.*/)[^/]+$', pathNot: '^(bench|scripts)/' },
      to: { path: '/inside/', pathNot: ['^$1inside/', '^$1[^/]+$'] },
    },
    {
      name: 'nobody-reads-the-environment',
      comment: 'config.ts turns the environment into a Config; what starts a process hands it over.',
      severity: 'error',
      from: {
        path: OF_THE_SERVER,
        pathNot: `^(${SHOP.root}(main|app|commands/[^/]+)|packages/core/src/serve)[.]ts$`,
      },
      to: { path: '^packages/core/src/config[.]ts$' },
    },
    {
      name: 'the-server-knows-no-sandbox',
      comment: 'The server is handed addresses and cannot tell which world they lead to.',
      severity: 'error',
      from: { path: OF_THE_SERVER },
      to: { path: '^packages/sandbox/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '[.](test|fixture)[.]ts$' },
    parser: 'swc',
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'],
      conditionNames: ['import', 'node', 'default'],
      exportsFields: ['exports'],
    },
  },
};
