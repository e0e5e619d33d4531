// SPDX-License-Identifier: Apache-2.0
import HostProcess
import Systemd

/// Of this machine; $NEXUSGUARD_MACHINE_ID stands for it in containers that have no machine-id(5).
func machineIdentity() throws(Failure) -> String {
    if let text = Host.environment("NEXUSGUARD_MACHINE_ID") {
        let isHexadecimal = text.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
        guard text.utf8.count == 32, isHexadecimal else {
            throw Failure("NEXUSGUARD_MACHINE_ID is not 32 hexadecimal digits in lower case")
        }
        return text
    }
    do throws(MachineIdentity.Missing) {
        return try MachineIdentity.current()
    } catch {
        throw Failure(error.description)
    }
}
