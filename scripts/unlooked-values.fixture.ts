/** Values that `unlooked-values.ts` finds, and values that it lets pass. */
type Json = Record<string, unknown>;

export function unlooked(value: unknown, record: Json, list: readonly unknown[], some: Json | string) {
  return [
    String(value),
    `${record.name}`,
    Number(list[0]),
    String(list),
    `${some}`,
    record.toString(),
    BigInt(JSON.parse('{}').amount),
    value instanceof Error ? `${value.cause}` : '',
  ];
}

export function looked(value: unknown, names: readonly string[], at: Date, url: URL, address: `0x${string}`) {
  if (typeof value === 'string' || typeof value === 'bigint') return String(value);
  return `${names} ${at} ${url} ${address} ${Number(typeof value === 'number' ? value : 0)}`;
}
