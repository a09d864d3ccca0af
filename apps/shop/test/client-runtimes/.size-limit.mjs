// The sizes that the client keeps to, minified and compressed as a bundler for the web makes it, of the unpacked package in a
// folder that FAREBOX_PACKAGE names.
const core = `${process.env.FAREBOX_PACKAGE}/dist/index.js`;
const checks = [
  { name: 'all of the core', path: core, import: '*', limit: '15 kB' },
  { name: 'to buy', path: core, import: '{ createFarebox }', limit: '14 kB' },
  { name: 'a part of it alone', path: core, import: '{ memoryStore }', limit: '400 B' },
];
export default checks.map((check) => ({ ...check, gzip: true, brotli: false }));
