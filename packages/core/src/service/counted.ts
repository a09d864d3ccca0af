/**
 * Leaves out services that are others under a second name: a count of what is sold counts each once.
 *
 * @returns those that are counted
 */
export function countedOf<Listed extends { readonly aliasOf?: string | null }>(
  services: readonly Listed[],
): Listed[] {
  return services.filter(({ aliasOf = null }) => aliasOf === null);
}
