/**
 * Who stands in the sandbox's lists of sanctions and mixing services: invented entries, named SANDBOX LISTED 1, 2, … so
 * that nobody takes them for real. All publishers' stand-ins draw from here.
 */

export interface SandboxListed {
  number: number;
  name: string;
  kind: 'individual' | 'entity';
  alias: string;
  /** Where the OFAC list names one. */
  address: { asset: string; address: string } | null;
}

const ENTRIES = 12;

/** The address of an entry: it ends with the entry's number, and nobody has its key. */
function listedAddress(number: number): string {
  return `0x5a4db0c515ed${number.toString(16).padStart(28, '0')}`;
}

/** The addresses of mixing services begin in another way. */
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

/** A day in the words of a list: `20`, `11`, `2026`. */
export function dayOf(nowMs: number): { day: string; month: string; year: string; iso: string } {
  const iso = new Date(nowMs).toISOString().slice(0, 10);
  const [year = '', month = '', day = ''] = iso.split('-');
  return { day, month, year, iso };
}
