/**
 * The entries of the sandbox's lists of sanctions and the addresses of its mixing services. All are invented. Entries are named
 * SANDBOX LISTED 1, 2, …, so that nobody takes them for real. The stand-ins of all publishers take their entries from here.
 */

export interface SandboxListed {
  number: number;
  name: string;
  kind: 'individual' | 'entity';
  alias: string;
  /** The crypto address that the OFAC list names for the entry; null if it names none. */
  address: { asset: string; address: string } | null;
}

const ENTRIES = 12;

/** The address of an entry. It ends with the entry's number in hexadecimal digits, and nobody has its key. */
function listedAddress(number: number): string {
  return `0x5a4db0c515ed${number.toString(16).padStart(28, '0')}`;
}

/** The address of a mixing service. It begins differently from the addresses of listed entries. */
export function mixerAddress(number: number): string {
  return `0x5a4db0c5313e${number.toString(16).padStart(28, '0')}`;
}

export const SANDBOX_LISTED: readonly SandboxListed[] = Array.from({ length: ENTRIES }, (_, index) => {
  const number = index + 1;
  return {
    number,
    name: `SANDBOX LISTED ${number}`,
    kind: number % 3 === 0 ? 'entity' : 'individual',
    alias: `SANDBOX ALIAS ${number}`,
    address:
      number === 12
        ? { asset: 'SOL', address: 'SandboxListed12aaaaaaaaaaaaaaaaaaaaaaaaaaaa' }
        : number % 2 === 1
          ? { asset: 'ETH', address: listedAddress(number) }
          : null,
  };
});

/** The UTC day of a time as the lists write it: `20`, `11` and `2026`, and the ISO 8601 date. */
export function dayOf(nowMs: number): { day: string; month: string; year: string; iso: string } {
  const iso = new Date(nowMs).toISOString().slice(0, 10);
  const [year = '', month = '', day = ''] = iso.split('-');
  return { day, month, year, iso };
}
