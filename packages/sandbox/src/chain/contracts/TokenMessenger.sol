// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface Token {
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Stands where CCTP's TokenMessengerV2 does: the same function, checks and event. What the real one burns lies here for
/// good: nobody attests burns of the sandbox, so nothing is minted on its other chain.
contract TokenMessenger {

    event DepositForBurn(
        address indexed burnToken,
        uint256 amount,
        address indexed depositor,
        bytes32 mintRecipient,
        uint32 destinationDomain,
        bytes32 destinationTokenMessenger,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 indexed minFinalityThreshold,
        bytes hookData
    );

    /// Of the chain that this lies on: Ethereum, or else Base.
    function usdc() public view returns (address) {
        return block.chainid == 1
            ? 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48
            : 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913;
    }

    function localDomain() public view returns (uint32) {
        return block.chainid == 1 ? 0 : 6;
    }

    function depositForBurn(
        uint256 amount,
        uint32 destinationDomain,
        bytes32 mintRecipient,
        address burnToken,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external {
        require(amount > 0, "Amount must be nonzero");
        require(mintRecipient != bytes32(0), "Mint recipient must be nonzero");
        require(maxFee < amount, "Max fee must be less than amount");
        require(burnToken == usdc(), "Burn token not supported");
        require(destinationDomain != localDomain() && destinationDomain < 32, "No TokenMessenger for domain");
        require(Token(burnToken).transferFrom(msg.sender, address(this), amount), "Transfer operation failed");
        emit DepositForBurn(
            burnToken,
            amount,
            msg.sender,
            mintRecipient,
            destinationDomain,
            bytes32(uint256(uint160(address(this)))),
            destinationCaller,
            maxFee,
            minFinalityThreshold,
            ""
        );
    }
}
