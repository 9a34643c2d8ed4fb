// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {BusinessWallet} from "./BusinessWallet.sol";
import {Charter} from "./libraries/Charter.sol";
import {IBusinessFactory} from "./interfaces/IBusinessFactory.sol";

/// @title The factory of business wallets
contract BusinessFactory is IBusinessFactory {
    /// @inheritdoc IBusinessFactory
    address public immutable implementation;
    /// @inheritdoc IBusinessFactory
    bytes32 public immutable environment;

    /// @param environment_ differs between installations and between live and sandbox, so that they share no addresses
    constructor(bytes32 environment_) {
        environment = environment_;
        implementation = address(new BusinessWallet());
    }

    /// @inheritdoc IBusinessFactory
    function create(bytes calldata charter, bytes32 salt) external returns (address wallet) {
        wallet = walletOf(charter, salt);
        if (wallet.code.length > 0) return wallet;
        bytes memory checked = charter;
        Charter.check(checked);
        Clones.cloneDeterministicWithImmutableArgs(implementation, checked, salt);
        emit BusinessCreated(wallet, keccak256(checked));
    }

    /// @inheritdoc IBusinessFactory
    function walletOf(bytes calldata charter, bytes32 salt) public view returns (address) {
        return Clones.predictDeterministicAddressWithImmutableArgs(implementation, charter, salt);
    }
}
