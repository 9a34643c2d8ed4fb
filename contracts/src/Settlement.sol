// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "./interfaces/ISettlement.sol";

/// @notice See {ISettlement}.
contract Settlement is ISettlement {
    /// @inheritdoc ISettlement
    function initiate(bytes32 root) external {
        emit Initiated(msg.sender, root);
    }

    /// @inheritdoc ISettlement
    function confirm(bytes32 root) external {
        emit Confirmed(msg.sender, root);
    }
}
