// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CredentialRegistry} from "../src/CredentialRegistry.sol";
import {assertEq, vm} from "./Vm.sol";

/// Attests, revokes and distrusts at random and keeps a plain record of what must hold.
contract RegistryActor {
    uint256 public constant ISSUERS = 2;
    uint256 public constant ROOTS = 5;

    struct Kept {
        uint48 attestedAt;
        uint48 revokedAt;
    }

    CredentialRegistry public immutable REGISTRY;
    mapping(address => mapping(bytes32 => Kept)) public kept;
    mapping(address => uint48) public distrustedFrom;
    uint48 private _time = 1_800_000_000;

    constructor() {
        REGISTRY = new CredentialRegistry(address(this));
        for (uint256 index = 0; index < ISSUERS; ++index) {
            REGISTRY.grantRole(REGISTRY.issuerRole(issuerAt(index)), address(this));
        }
        vm.warp(_time);
    }

    function attest(uint256 seed, uint8 count) external {
        (address issuer, bytes32[] memory roots) = _batch(seed, count);
        REGISTRY.attest(issuer, roots);
        for (uint256 index = 0; index < roots.length; ++index) {
            Kept storage one = kept[issuer][roots[index]];
            if (one.attestedAt == 0 && one.revokedAt == 0) one.attestedAt = _time;
        }
    }

    function revoke(uint256 seed, uint8 count) external {
        (address issuer, bytes32[] memory roots) = _batch(seed, count);
        REGISTRY.revoke(issuer, roots);
        for (uint256 index = 0; index < roots.length; ++index) {
            Kept storage one = kept[issuer][roots[index]];
            if (one.revokedAt == 0) one.revokedAt = _time;
        }
    }

    /// Made rare: roots that an issuer attests after its distrust are never live, so later acts would test little.
    function distrust(uint256 seed, uint16 back) external {
        if (seed % 8 != 0) return;
        address issuer = issuerAt(seed % ISSUERS);
        uint48 current = distrustedFrom[issuer];
        uint48 from = (current == 0 ? _time : current) - 1 - back;
        REGISTRY.distrust(issuer, from);
        distrustedFrom[issuer] = from;
    }

    function wait_(uint16 seconds_) external {
        _time += seconds_;
        vm.warp(_time);
    }

    function issuerAt(uint256 index) public pure returns (address) {
        return address(uint160(0x1000 + index));
    }

    function rootAt(uint256 index) public pure returns (bytes32) {
        return keccak256(abi.encode(index));
    }

    function _batch(uint256 seed, uint8 count) private pure returns (address issuer, bytes32[] memory roots) {
        issuer = issuerAt(seed % ISSUERS);
        roots = new bytes32[](count % 4);
        for (uint256 index = 0; index < roots.length; ++index) {
            roots[index] = rootAt(uint256(keccak256(abi.encode(seed, index))) % ROOTS);
        }
    }
}

contract CredentialRegistryInvariants {
    RegistryActor private _actor = new RegistryActor();

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_actor);
    }

    /// forge-config: default.invariant.fail-on-revert = true
    function invariant_theRegistrySaysWhatThePlainRecordSays() external view {
        for (uint256 issuer = 0; issuer < _actor.ISSUERS(); ++issuer) {
            for (uint256 root = 0; root < _actor.ROOTS(); ++root) {
                _check(_actor.issuerAt(issuer), _actor.rootAt(root));
            }
        }
    }

    function _check(address issuer, bytes32 root) private view {
        CredentialRegistry registry = _actor.REGISTRY();
        (uint48 attestedAt, uint48 revokedAt, uint48 from) = registry.statusOf(issuer, root);
        (uint48 keptAttestedAt, uint48 keptRevokedAt) = _actor.kept(issuer, root);
        assertEq(attestedAt, keptAttestedAt);
        assertEq(revokedAt, keptRevokedAt);
        assertEq(from, _actor.distrustedFrom(issuer));
        bool isTrusted = from == 0 || attestedAt < from;
        assert(registry.isLive(issuer, root) == (attestedAt != 0 && revokedAt == 0 && isTrusted));
    }
}
