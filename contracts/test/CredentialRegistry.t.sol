// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {
    IAccessControlDefaultAdminRules
} from "@openzeppelin/contracts/access/extensions/IAccessControlDefaultAdminRules.sol";

import {CredentialRegistry} from "../src/CredentialRegistry.sol";
import {ICredentialRegistry} from "../src/interfaces/ICredentialRegistry.sol";
import {Vm, assertAtMost, assertEq, vm} from "./Vm.sol";

contract CredentialRegistryTest {
    address private constant _ADMIN = address(0xad);
    address private constant _ISSUER = address(0x155);
    address private constant _OTHER_ISSUER = address(0x156);
    address private constant _SIGNER = address(0x51);

    CredentialRegistry private _registry = new CredentialRegistry(_ADMIN);

    function setUp() external {
        vm.warp(1_800_000_000);
        bytes32 role = _registry.issuerRole(_ISSUER);
        vm.prank(_ADMIN);
        _registry.grantRole(role, _SIGNER);
    }

    function testFuzz_anAttestedRootIsLiveSinceThatBlock(bytes32 root, uint48 time) external {
        vm.assume(time > 0);
        vm.warp(time);
        vm.expectEmit(true, true, true, true, address(_registry));
        emit ICredentialRegistry.Attested(_ISSUER, root);
        _attest(_one(root));
        _assertStatus(root, time, 0, 0);
        assert(_registry.isLive(_ISSUER, root));
    }

    function test_anUnknownRootIsNotLive() external view {
        _assertStatus("root", 0, 0, 0);
        assert(!_registry.isLive(_ISSUER, "root"));
    }

    function test_aRootCountsForItsIssuerAlone() external {
        _attest(_one("root"));
        assert(!_registry.isLive(_OTHER_ISSUER, "root"));
    }

    function test_aRepeatedRootKeepsItsFirstTimeAndSaysNothing() external {
        _attest(_one("first"));
        vm.warp(1_800_000_100);
        bytes32[] memory roots = new bytes32[](3);
        (roots[0], roots[1], roots[2]) = ("first", "second", "second");
        vm.recordLogs();
        _attest(roots);
        assertEq(vm.getRecordedLogs().length, 1);
        _assertStatus("first", 1_800_000_000, 0, 0);
        _assertStatus("second", 1_800_000_100, 0, 0);
    }

    function test_revocationIsFinal() external {
        _attest(_one("root"));
        vm.warp(1_800_000_100);
        vm.expectEmit(true, true, true, true, address(_registry));
        emit ICredentialRegistry.Revoked(_ISSUER, "root");
        _revoke(_one("root"));
        vm.warp(1_800_000_200);
        vm.recordLogs();
        _revoke(_one("root"));
        _attest(_one("root"));
        assertEq(vm.getRecordedLogs().length, 0);
        _assertStatus("root", 1_800_000_000, 1_800_000_100, 0);
        assert(!_registry.isLive(_ISSUER, "root"));
    }

    function test_aRootThatIsTwiceInABatchOfRevocationsIsRevokedOnce() external {
        bytes32[] memory roots = new bytes32[](2);
        (roots[0], roots[1]) = ("root", "root");
        vm.recordLogs();
        _revoke(roots);
        assertEq(vm.getRecordedLogs().length, 1);
    }

    function test_aRootRevokedBeforeItsAttestationNeverBecomesLive() external {
        _revoke(_one("root"));
        _attest(_one("root"));
        _assertStatus("root", 0, 1_800_000_000, 0);
        assert(!_registry.isLive(_ISSUER, "root"));
    }

    function testFuzz_onlyTheIssuersRoleWrites(address sender) external {
        vm.assume(sender != _SIGNER);
        bytes32 role = _registry.issuerRole(_ISSUER);
        vm.prank(sender);
        vm.expectRevert(_lacksRole(sender, role));
        _registry.attest(_ISSUER, _one("root"));
        vm.prank(sender);
        vm.expectRevert(_lacksRole(sender, role));
        _registry.revoke(_ISSUER, _one("root"));
    }

    function test_theRoleOfOneIssuerDoesNotWriteForAnother() external {
        bytes32 role = _registry.issuerRole(_OTHER_ISSUER);
        vm.prank(_SIGNER);
        vm.expectRevert(_lacksRole(_SIGNER, role));
        _registry.attest(_OTHER_ISSUER, _one("root"));
    }

    function test_aRoleTakenAwayNoLongerWrites() external {
        bytes32 role = _registry.issuerRole(_ISSUER);
        vm.prank(_ADMIN);
        _registry.revokeRole(role, _SIGNER);
        vm.prank(_SIGNER);
        vm.expectRevert(_lacksRole(_SIGNER, role));
        _registry.attest(_ISSUER, _one("root"));
    }

    function test_whoWritesForAnIssuerHandsNoRoleOn() external {
        bytes32 role = _registry.issuerRole(_ISSUER);
        vm.prank(_SIGNER);
        vm.expectRevert(_lacksRole(_SIGNER, bytes32(0)));
        _registry.grantRole(role, address(0xbad));
    }

    function test_theAddressZeroIsNoIssuer() external {
        bytes memory reason = abi.encodeWithSelector(ICredentialRegistry.IssuerIsZero.selector);
        vm.expectRevert(reason);
        _registry.issuerRole(address(0));
        vm.prank(_ADMIN);
        vm.expectRevert(reason);
        _registry.attest(address(0), _one("root"));
        vm.prank(_ADMIN);
        vm.expectRevert(reason);
        _registry.revoke(address(0), _one("root"));
        vm.prank(_ADMIN);
        vm.expectRevert(reason);
        _registry.distrust(address(0), 1);
    }

    function testFuzz_distrustEndsWhatWasAttestedAtOrAfterIt(uint48 attestedAt, uint48 from) external {
        vm.assume(attestedAt > 0 && from > 0);
        vm.warp(attestedAt);
        _attest(_one("root"));
        vm.expectEmit(true, true, true, true, address(_registry));
        emit ICredentialRegistry.Distrusted(_ISSUER, from);
        vm.prank(_ADMIN);
        _registry.distrust(_ISSUER, from);
        _assertStatus("root", attestedAt, 0, from);
        assert(_registry.isLive(_ISSUER, "root") == (attestedAt < from));
        assert(!_registry.isLive(_OTHER_ISSUER, "root"));
    }

    function test_distrustEndsWhatWasAttestedAtThatVeryTime() external {
        uint48 time = 1_800_000_000;
        vm.warp(time);
        _attest(_one("root"));
        vm.prank(_ADMIN);
        _registry.distrust(_ISSUER, time);
        assert(!_registry.isLive(_ISSUER, "root"));
    }

    function testFuzz_distrustOnlyGrows(uint48 first, uint48 second) external {
        vm.assume(first > 0);
        vm.prank(_ADMIN);
        _registry.distrust(_ISSUER, first);
        bool isEarlier = second > 0 && second < first;
        if (!isEarlier) {
            vm.expectRevert(abi.encodeWithSelector(ICredentialRegistry.DistrustNotEarlier.selector, second, first));
        }
        vm.prank(_ADMIN);
        _registry.distrust(_ISSUER, second);
        _assertStatus("root", 0, 0, isEarlier ? second : first);
    }

    function test_distrustAsOfTheSameTimeIsRefused() external {
        vm.prank(_ADMIN);
        _registry.distrust(_ISSUER, 7);
        vm.prank(_ADMIN);
        vm.expectRevert(abi.encodeWithSelector(ICredentialRegistry.DistrustNotEarlier.selector, 7, 7));
        _registry.distrust(_ISSUER, 7);
    }

    function test_distrustNeedsATime() external {
        vm.prank(_ADMIN);
        vm.expectRevert(abi.encodeWithSelector(ICredentialRegistry.DistrustNotEarlier.selector, 0, 0));
        _registry.distrust(_ISSUER, 0);
    }

    function testFuzz_onlyTheAdminDistrusts(address sender) external {
        vm.assume(sender != _ADMIN);
        vm.prank(sender);
        vm.expectRevert(_lacksRole(sender, bytes32(0)));
        _registry.distrust(_ISSUER, 1);
    }

    function test_theAdminChangesInTwoStepsAndADay() external {
        address next = address(0xadd);
        vm.prank(_ADMIN);
        _registry.beginDefaultAdminTransfer(next);
        vm.warp(1_800_000_000 + 1 days);
        vm.prank(next);
        vm.expectRevert(
            abi.encodeWithSelector(
                IAccessControlDefaultAdminRules.AccessControlEnforcedDefaultAdminDelay.selector, 1_800_000_000 + 1 days
            )
        );
        _registry.acceptDefaultAdminTransfer();
        assertEq(_registry.defaultAdmin(), _ADMIN);
        vm.warp(1_800_000_001 + 1 days);
        vm.prank(next);
        _registry.acceptDefaultAdminTransfer();
        assertEq(_registry.defaultAdmin(), next);
    }

    function test_aDocumentOfABatchOf10CostsAtMost30kGas() external {
        bytes32[] memory roots = new bytes32[](10);
        for (uint256 index = 0; index < 10; ++index) {
            roots[index] = keccak256(abi.encode(index));
        }
        _attest(roots);
        assertAtMost(vm.snapshotGasLastCall("attest of 10"), 300_000);
        _revoke(roots);
        vm.snapshotGasLastCall("revoke of 10");
        _attest(_one("alone"));
        vm.snapshotGasLastCall("attest of 1");
        vm.prank(_ADMIN);
        _registry.distrust(_ISSUER, 1);
        vm.snapshotGasLastCall("distrust");
    }

    function _attest(bytes32[] memory roots) private {
        vm.prank(_SIGNER);
        _registry.attest(_ISSUER, roots);
    }

    function _revoke(bytes32[] memory roots) private {
        vm.prank(_SIGNER);
        _registry.revoke(_ISSUER, roots);
    }

    function _assertStatus(bytes32 root, uint48 attestedAt, uint48 revokedAt, uint48 from) private view {
        (uint48 attested, uint48 revoked, uint48 distrusted) = _registry.statusOf(_ISSUER, root);
        assertEq(attested, attestedAt);
        assertEq(revoked, revokedAt);
        assertEq(distrusted, from);
    }

    function _one(bytes32 root) private pure returns (bytes32[] memory roots) {
        roots = new bytes32[](1);
        roots[0] = root;
    }

    function _lacksRole(address sender, bytes32 role) private pure returns (bytes memory) {
        return abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, sender, role);
    }
}
