// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    AccessControlDefaultAdminRules
} from "@openzeppelin/contracts/access/extensions/AccessControlDefaultAdminRules.sol";
import {ICredentialRegistry} from "./interfaces/ICredentialRegistry.sol";

/// @notice See {ICredentialRegistry}.
contract CredentialRegistry is ICredentialRegistry, AccessControlDefaultAdminRules {
    /// Both times share one slot, so that attesting writes one.
    struct Attestation {
        uint48 attestedAt;
        uint48 revokedAt;
    }

    /// The pause before a new admin takes over, so that a theft of the admin's key can be noticed.
    uint48 private constant _ADMIN_DELAY = 1 days;

    mapping(address issuer => mapping(bytes32 root => Attestation)) private _attestations;
    /// Zero: trusted.
    mapping(address issuer => uint48) private _distrustedFrom;

    /// @param admin grants roles and distrusts issuers. A parameter, since the deployer is a factory.
    constructor(address admin) AccessControlDefaultAdminRules(_ADMIN_DELAY, admin) {}

    /// @inheritdoc ICredentialRegistry
    function attest(address issuer, bytes32[] calldata roots) external {
        _checkRole(issuerRole(issuer));
        mapping(bytes32 => Attestation) storage attestations = _attestations[issuer];
        for (uint256 index = 0; index < roots.length; ++index) {
            bytes32 root = roots[index];
            Attestation storage attestation = attestations[root];
            if (attestation.attestedAt != 0 || attestation.revokedAt != 0) continue;
            attestation.attestedAt = _now();
            emit Attested(issuer, root);
        }
    }

    /// @inheritdoc ICredentialRegistry
    function revoke(address issuer, bytes32[] calldata roots) external {
        _checkRole(issuerRole(issuer));
        mapping(bytes32 => Attestation) storage attestations = _attestations[issuer];
        for (uint256 index = 0; index < roots.length; ++index) {
            bytes32 root = roots[index];
            Attestation storage attestation = attestations[root];
            if (attestation.revokedAt != 0) continue;
            attestation.revokedAt = _now();
            emit Revoked(issuer, root);
        }
    }

    /// @inheritdoc ICredentialRegistry
    function distrust(address issuer, uint48 from) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (issuer == address(0)) revert IssuerIsZero();
        uint48 current = _distrustedFrom[issuer];
        if (from == 0 || (current != 0 && from >= current)) revert DistrustNotEarlier(from, current);
        _distrustedFrom[issuer] = from;
        emit Distrusted(issuer, from);
    }

    /// @inheritdoc ICredentialRegistry
    function statusOf(address issuer, bytes32 root)
        external
        view
        returns (uint48 attestedAt, uint48 revokedAt, uint48 distrustedFrom)
    {
        Attestation storage attestation = _attestations[issuer][root];
        return (attestation.attestedAt, attestation.revokedAt, _distrustedFrom[issuer]);
    }

    /// @inheritdoc ICredentialRegistry
    function isLive(address issuer, bytes32 root) external view returns (bool) {
        Attestation storage attestation = _attestations[issuer][root];
        uint48 attestedAt = attestation.attestedAt;
        if (attestedAt == 0 || attestation.revokedAt != 0) return false;
        uint48 from = _distrustedFrom[issuer];
        return from == 0 || attestedAt < from;
    }

    /// @inheritdoc ICredentialRegistry
    function issuerRole(address issuer) public pure returns (bytes32) {
        if (issuer == address(0)) revert IssuerIsZero();
        return bytes32(uint256(uint160(issuer)));
    }

    /// 48 bits of seconds are enough for nine million years.
    function _now() private view returns (uint48) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint48(block.timestamp);
    }
}
