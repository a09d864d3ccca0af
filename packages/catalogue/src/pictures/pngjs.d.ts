/** The part of pngjs that is used here; the package ships no types. */
declare module 'pngjs' {
  /** Four bytes a pixel, row by row: red, green, blue, alpha. */
  interface Pixels {
    width: number;
    height: number;
    data: Buffer;
  }
  export const PNG: {
    sync: {
      /** @throws Error for what is no PNG, or a broken one */
      read(content: Buffer): Pixels;
      write(pixels: Pixels, options: { colorType: 2; inputColorType: 6 }): Buffer;
    };
  };
}
