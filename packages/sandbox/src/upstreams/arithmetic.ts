/** Finds a calculation in a prompt and evaluates it. */

const MAX_LENGTH = 200;

/**
 * The calculation that a prompt asks for, with its result: "2 + 3 * 4 = 14" for "What is 2 + 3 * 4?". Null if the prompt does
 * not ask for a calculation, or for one that has no finite value or more than 200 characters.
 */
export function calculation(prompt: string): string | null {
  const asked =
    /^(?:(?:what(?:'s| is)|how much is|calculate|compute|evaluate|solve)[\s:]+)?([-+*/^%().\d\s,x×÷−]+?)\s*(?:=\s*)?[?.!]?$/i.exec(
      prompt.trim(),
    )?.[1];
  if (asked === undefined || asked.length > MAX_LENGTH || !/\d\s*[-+*/^%x×÷−]/.test(asked)) return null;
  const expression = asked
    .replace(/[x×]/gi, '*')
    .replace(/÷/g, '/')
    .replace(/−/g, '-')
    .replace(/(\d),(?=\d{3}\b)/g, '$1')
    .trim();
  const value = evaluate(expression);
  if (value === null) return null;
  return `${expression} = ${Number.isInteger(value) ? value : Number(value.toPrecision(12))}`;
}

/** The value of an expression of numbers, + - * / % ^ and parentheses; null if it is malformed or has no finite value. */
export function evaluate(expression: string): number | null {
  const tokens = expression.match(/\d+\.?\d*|\.\d+|[-+*/%^()]|\S/g) ?? [];
  let at = 0;

  function sum(): number {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-')
      value = tokens[at++] === '+' ? value + product() : value - product();
    return value;
  }

  function product(): number {
    let value = power();
    while (tokens[at] === '*' || tokens[at] === '/' || tokens[at] === '%') {
      const sign = tokens[at++];
      const other = power();
      value = sign === '*' ? value * other : sign === '/' ? value / other : value % other;
    }
    return value;
  }

  function power(): number {
    // A sign binds less tightly than a power: -2^2 is -4.
    if (tokens[at] === '-') {
      at += 1;
      return -power();
    }
    const base = atom();
    if (tokens[at] !== '^') return base;
    at += 1;
    return base ** power();
  }

  function atom(): number {
    const token = tokens[at++];
    if (token !== '(') return token === undefined || !/^[\d.]+$/.test(token) ? Number.NaN : Number(token);
    const value = sum();
    return tokens[at++] === ')' ? value : Number.NaN;
  }

  const value = sum();
  return at === tokens.length && Number.isFinite(value) ? value : null;
}
