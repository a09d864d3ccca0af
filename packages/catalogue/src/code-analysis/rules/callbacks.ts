/** Looks at functions that are meant for one caller: the pool, the lender or the collection that calls back. */
import type { Known, Listener } from '../flow.ts';
import type { Frame } from '../meaning.ts';
import type { Contract, Place, Routine } from '../syntax/tree.ts';
import { anybody, callerDecides } from './caller.ts';
import { type Finding, tell } from './finding.ts';

const CALLED_BACK =
  /^(\w+Callback|\w+V2Call|\w*[cC]all[bB]ack|onFlashLoan|executeOperation|receiveFlashLoan\w*|callFunction|on(ERC\d+|Token|Morpho)\w+|tokensReceived|lzReceive|ccipReceive|_?nonblockingLzReceive|xReceive|handle|sgReceive|anyExecute|receiveWormholeMessages|receivePayload|onMessageReceived|onReceive\w*|pancakeCall|BiswapCall|hook)$/;

/** A callback that acts for anybody. */
export function callbacks(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (!CALLED_BACK.test(entry.name) || entry.parameters.length < 2) return {};
  let told = false;
  const look = { contract, entry, into };
  return {
    outsideCall(call, known) {
      if (call.readsOnly) return;
      act(call.call.place, known, call.frame, 'calls another contract');
    },
    write({ place, value, target }, known, frame) {
      if (value === null || callerDecides(value, frame) || callerDecides(target, frame))
        act(place, known, frame, 'changes what it keeps');
    },
  };

  function act(place: Place, known: Known, frame: Frame, what: string): void {
    if (told || !anybody(known)) return;
    told = true;
    tell(look, 'unprotected-callback', place, frame, {
      severity: 'HIGH',
      confidence: 'medium',
      detail: `${entry.name} ${what}, and nothing before asks who calls.`,
    });
  }
}
