import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalFromFacilitator } from './facilitator-reasons.ts';

/** Reasons from the protocol's specification, and of facilitators in use. */
const KNOWN = {
  insufficient_funds: 'PAYMENT_INSUFFICIENT_FUNDS',
  invalid_exact_evm_insufficient_balance: 'PAYMENT_INSUFFICIENT_FUNDS',
  invalid_exact_evm_payload_signature: 'PAYMENT_SIGNATURE_INVALID',
  invalid_exact_evm_payload_authorization_valid_before: 'PAYMENT_EXPIRED',
  invalid_exact_evm_payload_authorization_valid_after: 'PAYMENT_NOT_YET_VALID',
  invalid_exact_evm_payload_authorization_value: 'PAYMENT_AMOUNT_MISMATCH',
  invalid_exact_evm_payload_recipient_mismatch: 'PAYMENT_RECIPIENT_MISMATCH',
  invalid_exact_evm_nonce_already_used: 'PAYMENT_AUTHORIZATION_USED',
  duplicate_settlement: 'PAYMENT_AUTHORIZATION_USED',
  unexpected_verify_error: 'PAYMENT_VERIFICATION_FAILED',
  invalid_network: 'PAYMENT_VERIFICATION_FAILED',
};
for (const [reason, code] of Object.entries(KNOWN)) {
  test(`${reason} means ${code}`, () => {
    const refused = refusalFromFacilitator(reason);
    assert.deepEqual([refused.code, refused.details], [code, { facilitatorReason: reason }]);
  });
}

test('free text is given no meaning and is not passed on', () => {
  for (const reason of [
    '',
    'insufficient_funds at 10.0.0.3',
    'Signature: <script>',
    'a'.repeat(101),
    'é_signature',
  ]) {
    const refused = refusalFromFacilitator(reason);
    assert.equal(refused.code, 'PAYMENT_VERIFICATION_FAILED');
    assert.deepEqual(refused.details, {});
    if (reason !== '') assert.ok(!JSON.stringify([refused.message, refused.hint]).includes(reason));
  }
});
