/**
 * The extension of A2A by which x402 pays, under both names that it has: that of x402's own transport, and that of the
 * extension's specification. What stands in messages is the same.
 */
export const X402_EXTENSIONS: readonly string[] = [
  'https://github.com/google-a2a/a2a-x402/v0.1',
  'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2',
];
