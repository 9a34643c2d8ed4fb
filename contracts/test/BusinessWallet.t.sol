// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BusinessFactory} from "../src/BusinessFactory.sol";
import {IBusinessWallet} from "../src/interfaces/IBusinessWallet.sol";
import {BusinessCrew, GOVERNANCE, MAJORITY, SIGNATURE, START, UNANIMOUS, UNTIL} from "./BusinessCrew.sol";
import {assertEq, vm} from "./Vm.sol";

contract BusinessWalletTest is BusinessCrew {
    bytes32 private constant _HASH = keccak256("terms");
    bytes4 private constant _MAGIC = 0x1626ba7e;

    /// forge-config: default.fuzz.runs = 64
    function testFuzz_exactlyTheThresholdSigns(uint8 size, uint256 voters, bool isUnanimous) external {
        uint256[] memory keys = _crew(1 + size % 25);
        uint8 rule = isUnanimous ? UNANIMOUS : MAJORITY;
        voters |= 1;
        IBusinessWallet wallet =
            IBusinessWallet(_factory.create(_charter([rule, 1 - rule, 1 - rule], keys, voters), bytes32(0)));
        uint256[] memory voting = _voting(keys, voters);
        uint256 needed = isUnanimous ? voting.length : voting.length / 2 + 1;
        assert(needed > 0 && needed <= voting.length);

        _refuseCount(wallet, _approve(wallet, voting, needed - 1, _HASH), needed);
        if (voting.length > needed) _refuseCount(wallet, _approve(wallet, voting, needed + 1, _HASH), needed);
        vm.expectEmit(true, true, true, true, address(wallet));
        emit IBusinessWallet.Recorded(_HASH);
        wallet.record(_HASH, UNTIL, _approve(wallet, voting, needed, _HASH));
        assertEq(wallet.recordedAt(_HASH), START);
        assertEq(bytes32(wallet.isValidSignature(_HASH, abi.encodePacked(uint8(1), _HASH))), bytes32(_MAGIC));
    }

    function test_nobodyElseCounts() external {
        uint256[] memory keys = _crew(4);
        bytes memory charter = _charter([MAJORITY, MAJORITY, MAJORITY], _some(keys, 0, 3), 5);
        IBusinessWallet wallet = IBusinessWallet(_factory.create(charter, bytes32(0)));
        bytes32 digest = _digest(wallet, SIGNATURE, _HASH, 0, UNTIL);
        // A member without a vote, a stranger, one member twice, two in the wrong order.
        _refuse(wallet, bytes.concat(_sign(keys[0], digest), _sign(keys[1], digest)), 1);
        _refuse(wallet, bytes.concat(_sign(keys[0], digest), _sign(keys[3], digest)), 1);
        _refuse(wallet, bytes.concat(_sign(keys[0], digest), _sign(keys[0], digest)), 1);
        _refuse(wallet, bytes.concat(_sign(keys[2], digest), _sign(keys[0], digest)), 1);
        // No signature at all recovers to nobody.
        _refuse(wallet, new bytes(130), 0);
        wallet.record(_HASH, UNTIL, bytes.concat(_sign(keys[0], digest), _sign(keys[2], digest)));
    }

    function test_aMalleatedSignatureIsNone() external {
        IBusinessWallet wallet = _found(1, MAJORITY);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(_crew(1)[0], _digest(wallet, SIGNATURE, _HASH, 0, UNTIL));
        uint256 order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
        _refuse(wallet, abi.encodePacked(r, order - uint256(s), 55 - v), 0);
        _refuse(wallet, abi.encodePacked(r, s, v - 27), 0);
        wallet.record(_HASH, UNTIL, abi.encodePacked(r, s, v));
    }

    function test_approvalsEndWithTheirTimeAndItCannotBeStretched() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        bytes memory approvals = _approve(wallet, _crew(3), 2, _HASH);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, 0));
        wallet.record(_HASH, UNTIL + 1, approvals);
        vm.warp(UNTIL + 1);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalsStale.selector, UNTIL));
        wallet.record(_HASH, UNTIL, approvals);
        vm.warp(UNTIL);
        wallet.record(_HASH, UNTIL, approvals);
    }

    function test_anApprovalIsForOneWalletOnOneChainInOneEnvironment() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        bytes memory approvals = _approve(wallet, _crew(3), 2, _HASH);
        bytes memory charter = wallet.charter();
        _refuse(IBusinessWallet(_factory.create(charter, bytes32("other"))), approvals, 0);
        BusinessFactory live = new BusinessFactory(keccak256("live"));
        _refuse(IBusinessWallet(live.create(charter, bytes32("salt"))), approvals, 0);
        uint256 id = block.chainid;
        vm.chainId(id + 1);
        _refuse(wallet, approvals, 0);
        vm.chainId(id);
        wallet.record(_HASH, UNTIL, approvals);
    }

    function test_anApprovalOfOneCategoryIsUselessInEveryOther() external {
        IBusinessWallet wallet = _found(1, MAJORITY);
        uint256 key = _crew(1)[0];
        bytes32 governance = _governance("moveTo(address)", abi.encode(address(0xbeef)), 0);
        for (uint8 category = 0; category < 6; ++category) {
            if (category != SIGNATURE) _refuse(wallet, _sign(key, _digest(wallet, category, _HASH, 0, UNTIL)), 0);
            if (category == GOVERNANCE) continue;
            bytes memory approval = _sign(key, _digest(wallet, category, governance, 0, UNTIL));
            vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, 0));
            wallet.moveTo(address(0xbeef), UNTIL, approval);
        }
        // The hash of an act of governance can be signed as a document, but that does not execute the act.
        wallet.record(governance, UNTIL, _sign(key, _digest(wallet, SIGNATURE, governance, 0, UNTIL)));
        assertEq(wallet.successor(), address(0));
    }

    function test_onlyWhatWasRecordedIsSigned() external {
        IBusinessWallet wallet = _found(1, MAJORITY);
        bytes memory signature = abi.encodePacked(uint8(1), _HASH);
        assert(wallet.isValidSignature(_HASH, signature) != _MAGIC);
        wallet.record(_HASH, UNTIL, _approve(wallet, _crew(1), 1, _HASH));
        assert(wallet.isValidSignature(_HASH, signature) == _MAGIC);
        assert(wallet.isValidSignature(_HASH, "") != _MAGIC);
        assert(wallet.isValidSignature(_HASH, abi.encodePacked(uint8(2), _HASH)) != _MAGIC);
        assert(wallet.isValidSignature(_HASH, abi.encodePacked(uint8(1), keccak256("other"))) != _MAGIC);
        assert(wallet.isValidSignature(_HASH, abi.encodePacked(signature, uint8(0))) != _MAGIC);
        assert(wallet.isValidSignature(keccak256("other"), abi.encodePacked(uint8(1), keccak256("other"))) != _MAGIC);
        // Not even the member's own signature of the hash is accepted.
        assert(wallet.isValidSignature(_HASH, _sign(_crew(1)[0], _HASH)) != _MAGIC);
    }

    function test_aHashIsSignedOnce() external {
        IBusinessWallet wallet = _found(1, MAJORITY);
        bytes memory approvals = _approve(wallet, _crew(1), 1, _HASH);
        wallet.record(_HASH, UNTIL, approvals);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.AlreadyRecorded.selector, _HASH));
        wallet.record(_HASH, UNTIL, approvals);
    }

    function test_aSignatureOutlivesItsApprovalsAndSigners() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        uint256[] memory keys = _crew(3);
        wallet.record(_HASH, UNTIL, _approve(wallet, keys, 2, _HASH));
        bytes memory next = _charter([UNANIMOUS, UNANIMOUS, UNANIMOUS], _some(keys, 2, 1), 1);
        wallet.changeCharter(next, UNTIL, _decide(wallet, keys, "changeCharter(bytes)", abi.encode(next)));
        vm.warp(START + 3650 days);
        assert(wallet.isValidSignature(_HASH, abi.encodePacked(uint8(1), _HASH)) == _MAGIC);
    }

    function test_recordingAndAskingCostWhatTheSnapshotSays() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        wallet.record(_HASH, UNTIL, _approve(wallet, _crew(3), 2, _HASH));
        vm.snapshotGasLastCall("record 2 of 3");
        bytes memory signature = abi.encodePacked(uint8(1), _HASH);
        wallet.isValidSignature(_HASH, signature);
        vm.snapshotGasLastCall("isValidSignature");
    }

    function test_theDomainIsToldAsErc5267Says() external {
        IBusinessWallet wallet = _found(1, MAJORITY);
        (bytes1 fields, string memory name,, uint256 chainId, address verifying,, uint256[] memory extensions) =
            wallet.eip712Domain();
        assertEq(bytes32(fields), bytes32(bytes1(0x0c)));
        assertEq(bytes(name).length + extensions.length, 0);
        assertEq(chainId, block.chainid);
        assertEq(verifying, address(wallet));
    }

    function _refuse(IBusinessWallet wallet, bytes memory approvals, uint256 index) private {
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, index));
        wallet.record(_HASH, UNTIL, approvals);
    }

    function _refuseCount(IBusinessWallet wallet, bytes memory approvals, uint256 needed) private {
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalsMiscounted.selector, needed));
        wallet.record(_HASH, UNTIL, approvals);
    }

    function _voting(uint256[] memory keys, uint256 voters) private pure returns (uint256[] memory voting) {
        uint256 count = 0;
        for (uint256 i = 0; i < keys.length; ++i) {
            count += (voters >> i) & 1;
        }
        voting = new uint256[](count);
        uint256 next = 0;
        for (uint256 i = 0; i < keys.length; ++i) {
            if ((voters >> i) & 1 == 1) voting[next++] = keys[i];
        }
    }
}
