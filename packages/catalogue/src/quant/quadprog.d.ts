/** The part of quadprog that is used here; the package ships no types. Arrays are counted from 1: index 0 is unused. */
declare module 'quadprog' {
  interface Solution {
    solution: number[];
    value: number[];
    /** Empty when it worked. Otherwise the numbers mean nothing, though they are there. */
    message: string;
  }
  const quadprog: {
    /** Minimises ½ x'Dx - d'x where A'x >= b, the first `equalities` of them with equality. */
    solveQP(
      D: readonly (readonly number[])[],
      d: readonly number[],
      A: readonly (readonly number[])[],
      b: readonly number[],
      equalities: number,
    ): Solution;
  };
  export default quadprog;
}
