/** The mails to the owner of a kept card. Plain words, no key: mail is read on its way. */
import { microsToUsd } from '../../ledger/money.ts';
import type { RechargeSettings } from './recharge-settings.ts';

export interface MailText {
  subject: string;
  text: string;
}

export interface KeptCard extends RechargeSettings {
  /** Such as `visa 4242`. */
  cardLabel: string;
}

/** A card comes with the key that it pays for first. */
export const HOW_TO_KEEP_A_CARD =
  'A card is kept when a person pays a checkout that was opened with autoRecharge.enabled (POST /api/m2m/credits/checkout/session), with this key in X-API-KEY to refill this one.';

/** Micro-USD in whole cents, cut. */
const usd = (micros: bigint) => `${microsToUsd(micros, 2)} USD`;
/** A code such as `insufficient_funds`, as words. */
const words = (code: string) => code.replaceAll('_', ' ');

/** The mails of one server. @param baseUrl where its API is */
export function rechargeMails(baseUrl: string) {
  const howToChange = (change: string) =>
    `To ${change}, send PATCH ${baseUrl}/api/keys/me with your API key. GET shows how it stands.`;
  const switchOff = howToChange('change this or switch it off ({"autoRecharge":{"enabled":false}})');
  const another = `${HOW_TO_KEEP_A_CARD} The API is at ${baseUrl}.`;
  const compose = (subject: string, ...paragraphs: string[]): MailText => ({
    subject,
    text: `${paragraphs.join('\n\n')}\n`,
  });

  return {
    enabled: (card: KeptCard) =>
      compose(
        'Auto-recharge is on',
        `From now on your card (${card.cardLabel}) is charged ${usd(card.topUpMicros)} whenever your balance falls below ${usd(card.thresholdMicros)}.`,
        switchOff,
      ),

    charged: (card: KeptCard, amountMicros: bigint, balanceMicros: bigint) =>
      compose(
        `Your balance was topped up by ${usd(amountMicros)}`,
        `Your balance fell below ${usd(card.thresholdMicros)}, so your card (${card.cardLabel}) was charged ${usd(amountMicros)}. The balance is now ${usd(balanceMicros)}.`,
        switchOff,
      ),

    declined: (
      card: KeptCard,
      declined: { amountMicros: bigint; balanceMicros: bigint; reason: string; nextAtMs: number },
    ) =>
      compose(
        'Your card was declined: we will try again',
        `Your balance of ${usd(declined.balanceMicros)} is low, and your card (${card.cardLabel}) could not be charged ${usd(declined.amountMicros)}: ${words(declined.reason)}. Nothing was taken.`,
        `The next attempt is at ${new Date(declined.nextAtMs).toISOString()}.`,
        switchOff,
      ),

    /** @param card what was kept @param reason why it is off, in a code */
    off: (
      card: KeptCard,
      off: { amountMicros: bigint | null; balanceMicros: bigint; reason: string; cardIsKept: boolean },
    ) =>
      compose(
        'Auto-recharge is off',
        off.amountMicros === null
          ? `Your card (${card.cardLabel}) is not charged any more: ${words(off.reason)}.`
          : `Your card (${card.cardLabel}) could not be charged ${usd(off.amountMicros)}: ${words(off.reason)}. Nothing was taken, and it is not tried again.`,
        `The balance is ${usd(off.balanceMicros)}. Calls are paid from it until it is used up.`,
        off.cardIsKept
          ? `${howToChange('switch it on again ({"autoRecharge":{"enabled":true}})')} ${another}`
          : another,
      ),

    raised: ({ cardLabel, thresholdMicros, topUpMicros }: KeptCard) =>
      compose(
        'Auto-recharge charges more now',
        `Whoever holds the API key has changed it: your card (${cardLabel ?? 'the one that is kept'}) is charged ${usd(topUpMicros)} whenever the balance falls below ${usd(thresholdMicros)}.`,
        'If that was not you, rotate the key.',
        switchOff,
      ),

    ...mailsOfMoves(compose, switchOff),
  };
}

/** The mails to an address that the mail was moved away from. @param switchOff how to change it or switch it off */
function mailsOfMoves(compose: (subject: string, ...paragraphs: string[]) => MailText, switchOff: string) {
  return {
    /** @param perDayMicros what may be charged in 24 hours */
    movedAway: (card: KeptCard, perDayMicros: bigint) =>
      compose(
        'Auto-recharge mail goes to another address now',
        `Whoever holds the API key has changed the address that this mail goes to. Your card (${card.cardLabel}) is charged ${usd(card.topUpMicros)} whenever the balance falls below ${usd(card.thresholdMicros)}, at most ${usd(perDayMicros)} in 24 hours. For 30 days you still hear of every charge.`,
        'If that was not you, rotate the key.',
        switchOff,
      ),

    /** The mail about a charge, to an address that the mail was moved away from. */
    chargedAfterMove: (card: KeptCard, amountMicros: bigint, untilMs: number) =>
      compose(
        `Your card was charged ${usd(amountMicros)}`,
        `The prepaid balance was low, so the card that is kept for it (${card.cardLabel}) was charged ${usd(amountMicros)}.`,
        `Mail about it goes to another address now. Because it went to yours before, you hear of every charge until ${new Date(untilMs).toISOString()}.`,
        'If it was not you who moved it, rotate the key.',
        switchOff,
      ),
  };
}
