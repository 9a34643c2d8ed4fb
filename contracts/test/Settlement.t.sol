// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Settlement} from "../src/Settlement.sol";
import {ISettlement} from "../src/interfaces/ISettlement.sol";
import {Vm, assertAtMost, assertEq, vm} from "./Vm.sol";

contract SettlementTest {
    Settlement private _settlement = new Settlement();

    function testFuzz_initiateTellsSenderAndRoot(address operator, bytes32 root) external {
        vm.expectEmit(true, true, true, true, address(_settlement));
        emit ISettlement.Initiated(operator, root);
        vm.prank(operator);
        _settlement.initiate(root);
    }

    function testFuzz_confirmTellsSenderAndRoot(address operator, bytes32 root) external {
        vm.expectEmit(true, true, true, true, address(_settlement));
        emit ISettlement.Confirmed(operator, root);
        vm.prank(operator);
        _settlement.confirm(root);
    }

    function test_theTwoPhasesAreToldApartByTheEvent() external {
        vm.recordLogs();
        _settlement.initiate(bytes32("root"));
        _settlement.confirm(bytes32("root"));
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 2);
        assertEq(logs[0].topics[0], ISettlement.Initiated.selector);
        assertEq(logs[1].topics[0], ISettlement.Confirmed.selector);
        assertEq(logs[0].data.length + logs[1].data.length, 0);
    }

    function test_aBatchOfAnySizeCostsAtMost30kGas() external {
        _settlement.initiate(keccak256("a batch"));
        assertAtMost(vm.snapshotGasLastCall("initiate"), 30_000);
        _settlement.confirm(keccak256("a batch"));
        assertAtMost(vm.snapshotGasLastCall("confirm"), 30_000);
    }
}
