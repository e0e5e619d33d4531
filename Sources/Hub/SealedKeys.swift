// SPDX-License-Identifier: Apache-2.0
// Keys that the hub makes for devices: in the tables sealed, in the clear in the envelope that goes to
// the device and, of preshared keys, in what the keeper of the hub's interface gets.
import ControlAPI
import Crypto
import WireGuard

extension HubCore {
    /// What a sealed key is for: one cannot be put in the place of the other, nor into another device.
    enum SealedPurpose: String {
        case privateKey = ""
        case presharedKey = "psk "
    }

    func sealed(_ key: some Secret, _ purpose: SealedPurpose, of device: Device) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(32)
        key.withBytes { source in for index in source.indices { bytes.append(source[index]) } }
        defer { erase(&bytes) }
        return AES256GCM.seal(bytes, key: keys.sealing, aad: associated(purpose, device))
    }

    /// The private key that waits for the device's first heartbeat; nil: none, or one that is damaged.
    func sealedKey(of device: Device) -> SecretKey? {
        open(device.sealedKey, .privateKey, of: device) { SecretKey(copying: $0) }
    }

    /// nil: it has none.
    func presharedKey(of device: Device) -> PresharedKey? {
        open(device.sealedPresharedKey, .presharedKey, of: device) { PresharedKey(copying: $0) }
    }

    /// One that it has stays: the answer that brings it may have come already.
    func setPresharedKey(of device: inout Device) {
        guard model.settings.presharedKeys, presharedKey(of: device) == nil else { return }
        device.sealedPresharedKey = sealed(PresharedKey.generate(), .presharedKey, of: device)
    }

    private func open<Key>(
        _ sealed: [UInt8]?, _ purpose: SealedPurpose, of device: Device,
        _ make: (Span<UInt8>) -> Key
    ) -> Key? {
        guard let sealed,
            var bytes = try? AES256GCM.open(
                sealed, key: keys.sealing, aad: associated(purpose, device)), bytes.count == 32
        else { return nil }
        defer { erase(&bytes) }
        return make(bytes.span)
    }

    private func associated(_ purpose: SealedPurpose, _ device: Device) -> [UInt8] {
        Array((purpose.rawValue + device.id).utf8)
    }
}

extension SecretText {
    /// As configurations carry it.
    init(base64Of key: some Secret) {
        var text: [UInt8] = []
        text.reserveCapacity(44)
        key.appendBase64(to: &text)
        defer { erase(&text) }
        self.init(String(decoding: text, as: UTF8.self))
    }
}
