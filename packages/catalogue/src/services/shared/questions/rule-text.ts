/** A venue's rules are a page long at most; what is longer is cut, and ends in an ellipsis. */
const RULE_CHARACTERS = 3_000;

/** A rule as answers show it. */
export function ruleText(rules: string | null): string | null {
  return rules !== null && rules.length > RULE_CHARACTERS ? `${rules.slice(0, RULE_CHARACTERS)}…` : rules;
}
