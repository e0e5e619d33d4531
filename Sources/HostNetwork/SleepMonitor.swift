// SPDX-License-Identifier: Apache-2.0

/// Tells when the machine wakes from sleep, by logind's signal PrepareForSleep
/// (org.freedesktop.login1(5)): with `true` before it sleeps, with `false` afterwards (C87).
public struct SleepMonitor: ~Copyable {
    private static let service = "org.freedesktop.login1"
    private static let interface = "org.freedesktop.login1.Manager"
    private static let member = "PrepareForSleep"

    private let bus: SystemBus

    /// nil: there is no bus. Whether logind is there or comes later makes no difference.
    /// `busAddress` as in the D-Bus specification; nil: the system's.
    public init?(busAddress: String? = nil) {
        do throws(SystemBus.Failure) {
            let bus = try SystemBus(address: busAddress)
            try bus.listen(
                "type='signal',sender='\(Self.service)',interface='\(Self.interface)',"
                    + "member='\(Self.member)'")
            self.bus = bus
        } catch {
            return nil
        }
    }

    /// Readable when there is something for `next`. Not to be closed.
    public var descriptor: Int32 { bus.descriptor }

    /// What has come since the last call.
    public enum News: Equatable, Sendable {
        case nothing, woke
        /// The bus has ended: this monitor hears nothing any more, and its descriptor would stay
        /// readable.
        case ended
    }

    /// Reads all there is. Never waits.
    public func next() -> News {
        var news = News.nothing
        do throws(SystemBus.Failure) {
            while let signal = try bus.nextSignal(Self.interface, Self.member) {
                if try !signal.readFlag() { news = .woke }
            }
        } catch {
            return .ended
        }
        return news
    }
}
