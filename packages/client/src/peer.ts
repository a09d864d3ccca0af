/**
 * Reads a library that only some buyers need.
 *
 * @throws Error which package to install, when it is not there
 */
export async function peer<Library>(name: string, read: () => Promise<Library>): Promise<Library> {
  try {
    return await read();
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw new Error(`this way to pay needs a package that is not installed: npm install ${name}`, {
      cause: error,
    });
  }
}
