/** How the variables of an upstream are named, a chain's node among them. */

/** The prefix of an upstream’s variables. `AI` is the established prefix for a language model. */
export function variablePrefix(name: string): string {
  return name === 'ai' ? 'AI' : `UPSTREAM_${name.toUpperCase()}`;
}

/** The variable that holds an upstream's address. */
export function upstreamBaseUrlVariable(name: string): string {
  return `${variablePrefix(name)}_BASE_URL`;
}
