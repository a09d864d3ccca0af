/** For tests: what every program that a test starts is told of the test's own surroundings. */

/** Where programs are, and what Node has compiled before: without that each start compiles all that it loads once more. */
export const SURROUNDINGS: Readonly<Record<string, string>> = Object.fromEntries(
  ['PATH', 'NODE_COMPILE_CACHE'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);
