// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface Token {
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Stands where LI.FI's diamond does, with one way to begin a transfer: what is sent lies here for good, since nobody
/// carries it on to the sandbox's other chain.
contract BridgeDiamond {
    struct BridgeData {
        bytes32 transactionId;
        string bridge;
        string integrator;
        address referrer;
        address sendingAssetId;
        address receiver;
        uint256 minAmount;
        uint256 destinationChainId;
        bool hasSourceSwaps;
        bool hasDestinationCall;
    }

    event LiFiTransferStarted(BridgeData bridgeData);

    error InvalidAmount();
    error InvalidReceiver();

    function startBridgeTokensViaSandbox(BridgeData calldata bridgeData, bytes calldata) external payable {
        if (bridgeData.receiver == address(0)) revert InvalidReceiver();
        if (bridgeData.minAmount == 0) revert InvalidAmount();
        if (bridgeData.sendingAssetId == address(0)) {
            if (msg.value < bridgeData.minAmount) revert InvalidAmount();
        } else {
            require(
                Token(bridgeData.sendingAssetId).transferFrom(msg.sender, address(this), bridgeData.minAmount),
                "transfer failed"
            );
        }
        emit LiFiTransferStarted(bridgeData);
    }
}
