// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Deploys business wallets at addresses that commit to their first members and rules.
interface IBusinessFactory {
    /// @notice A business wallet now exists.
    /// @param wallet its address
    /// @param charter keccak256 of the charter it was created with
    event BusinessCreated(address indexed wallet, bytes32 indexed charter);

    /// @notice Creates the wallet of a charter. Anybody may: the address is derived from charter and salt, so nobody
    /// can take it with another charter, nothing has to be initialised, and a second call changes nothing.
    /// @param charter rules and roster as `Charter` packs them
    /// @param salt distinguishes wallets of the same charter
    /// @return wallet its address, whether it was created now or before
    function create(bytes calldata charter, bytes32 salt) external returns (address wallet);

    /// @notice The address of a charter's wallet, whether or not it exists yet.
    function walletOf(bytes calldata charter, bytes32 salt) external view returns (address);

    /// @notice The code that every wallet of this factory runs; it never changes.
    function implementation() external view returns (address);

    /// @notice Distinguishes this factory from those of other installations and environments.
    function environment() external view returns (bytes32);
}
