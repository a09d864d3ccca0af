/** The part of jstat that is used here; the package ships no types. */
declare module 'jstat' {
  interface Distribution {
    pdf(x: number, mean: number, deviation: number): number;
    cdf(x: number, mean: number, deviation: number): number;
    inv(probability: number, mean: number, deviation: number): number;
  }
  const jstat: { jStat: { normal: Distribution } };
  export default jstat;
}
