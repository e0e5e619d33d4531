// SPDX-License-Identifier: Apache-2.0
import Testing
import TunnelPlan

@Suite struct InterfaceNameTests {
    @Test(arguments: ["wg0", "a", "wg-site_1.b=c+d", "123456789012345", "..."])
    func acceptsWhatLinuxAndWgQuickAccept(_ name: String) {
        #expect(InterfaceName(name)?.description == name)
    }

    @Test(arguments: ["", ".", "..", "1234567890123456", "wg/0", "wg 0", "wg:0", "wg%0", "wgé"])
    func refusesEverythingElse(_ name: String) {
        #expect(InterfaceName(name) == nil)
    }
}
