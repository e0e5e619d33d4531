// SPDX-License-Identifier: Apache-2.0

/// What device and hub speak. It is one up with each change that the other side has to know of; fields
/// that may be absent need none.
public enum ProtocolVersion {
    /// Of this program.
    public static let current = 1
    /// The oldest that a hub of this version still speaks: below it a device is told to upgrade (426).
    public static let oldest = 1
}
