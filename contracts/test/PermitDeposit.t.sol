// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PermitDeposit} from "../src/PermitDeposit.sol";
import {World} from "./world/World.sol";

/// A deposit in one transaction, by a permit of real USDC's.
contract PermitDepositTest is World {
    PermitDeposit private helper;
    address private carol;
    uint256 private carolKey;
    uint256 private deadline;
    uint256 private constant ASSETS = 1_000 * 1e6;

    function setUp() public override {
        super.setUp();
        helper = makeHelper(vault);
        (carol, carolKey) = makeAddrAndKey("carol");
        usdc.mint(carol, ASSETS * 2);
        deadline = block.timestamp + 1 hours;
    }

    function sign(uint256 assets) private view returns (uint8 v, bytes32 r, bytes32 s) {
        bytes32 hash = keccak256(
            abi.encode(
                keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
                carol,
                address(helper),
                assets,
                usdc.nonces(carol),
                deadline
            )
        );
        return vm.sign(carolKey, keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), hash)));
    }

    function assertNothingIsLeft() private view {
        assertEq(usdc.balanceOf(address(helper)), 0);
        assertEq(vault.balanceOf(address(helper)), 0);
        assertEq(usdc.allowance(address(helper), address(vault)), 0);
        assertEq(usdc.allowance(carol, address(helper)), 0);
    }

    function test_one_transaction_deposits_and_leaves_nothing_behind() external {
        (uint8 v, bytes32 r, bytes32 s) = sign(ASSETS);
        uint256 told = vault.previewDeposit(ASSETS);
        vm.prank(carol);
        assertEq(helper.depositWithPermit(ASSETS, carol, told, deadline, v, r, s), told);
        assertEq(vault.balanceOf(carol), told);
        assertNothingIsLeft();
    }

    function test_a_permit_that_somebody_sent_first_still_deposits() external {
        (uint8 v, bytes32 r, bytes32 s) = sign(ASSETS);
        vm.prank(bob);
        usdc.permit(carol, address(helper), ASSETS, deadline, v, r, s);
        vm.prank(carol);
        helper.depositWithPermit(ASSETS, carol, 0, deadline, v, r, s);
        assertGt(vault.balanceOf(carol), 0);
        assertNothingIsLeft();
    }

    function test_nobody_deposits_what_is_anothers() external {
        (uint8 v, bytes32 r, bytes32 s) = sign(ASSETS);
        vm.prank(bob);
        vm.expectRevert();
        helper.depositWithPermit(ASSETS, bob, 0, deadline, v, r, s);
        vm.prank(bob);
        usdc.permit(carol, address(helper), ASSETS, deadline, v, r, s);
        vm.prank(bob);
        vm.expectRevert();
        helper.depositWithPermit(ASSETS, bob, 0, deadline, v, r, s);
        assertEq(usdc.balanceOf(carol), ASSETS * 2);
    }

    function test_a_wrong_or_late_permit_takes_nothing() external {
        (uint8 v, bytes32 r, bytes32 s) = sign(ASSETS);
        vm.startPrank(carol);
        vm.expectRevert();
        helper.depositWithPermit(ASSETS + 1, carol, 0, deadline, v, r, s);
        skip(2 hours);
        vm.expectRevert();
        helper.depositWithPermit(ASSETS, carol, 0, deadline, v, r, s);
    }

    function test_too_few_shares_are_refused_and_nothing_is_taken() external {
        (uint8 v, bytes32 r, bytes32 s) = sign(ASSETS);
        uint256 told = vault.previewDeposit(ASSETS);
        vm.prank(carol);
        vm.expectRevert(abi.encodeWithSelector(PermitDeposit.TooFewShares.selector, told, told + 1));
        helper.depositWithPermit(ASSETS, carol, told + 1, deadline, v, r, s);
        assertEq(usdc.balanceOf(carol), ASSETS * 2);
    }

    function test_what_somebody_sent_to_it_is_nobodys_gain() external {
        usdc.mint(address(helper), 5);
        (uint8 v, bytes32 r, bytes32 s) = sign(ASSETS);
        uint256 told = vault.previewDeposit(ASSETS);
        vm.prank(carol);
        assertEq(helper.depositWithPermit(ASSETS, carol, 0, deadline, v, r, s), told);
        assertEq(usdc.balanceOf(address(helper)), 5);
    }
}
