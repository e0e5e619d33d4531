// SPDX-License-Identifier: Apache-2.0
// What is in force but not on disk, because the disk refused it: shown, and tried again until the disk
// takes it. A disk that has room again must not need a change of the hub, or a restart, to hold what
// the tunnel has.
import HostProcess

struct DiskDebt: Equatable, Sendable {
    enum Item: Equatable, Sendable, CaseIterable { case identity, configuration, boot }

    /// Between two tries. Milliseconds.
    static let interval: Int64 = 10_000

    private(set) var items: [Item] = []
    /// Why, as of the latest try; nil: all is on disk.
    private(set) var fault: StoreFault?
    private(set) var since: Moment?
    /// When to try again; nil: never.
    private(set) var nextTry: Moment?

    /// True: it is worth a line in the log, since this failure is not the one that is known.
    mutating func refused(_ item: Item, _ new: StoreFault, at now: Moment) -> Bool {
        let isNews = fault?.code != new.code
        if !items.contains(item) { items.append(item) }
        fault = new
        since = since ?? now
        nextTry = now + Self.interval
        return isNews
    }

    mutating func written(_ item: Item) {
        items.removeAll { $0 == item }
        if items.isEmpty { self = DiskDebt() }
    }
}

extension AgentLoop {
    func noteRefused(_ item: DiskDebt.Item, _ fault: StoreFault, _ consequence: String) {
        guard debt.refused(item, fault, at: now.moment) else { return }
        log(.error, "\(fault.reason); \(consequence)")
    }

    /// A disk that is full keeps nobody from starting: the next start has the same number then, which
    /// the hub believes as well.
    func countBoot(_ store: AgentStore) throws(StoreFault) {
        guard boot == 0 else { return }
        boot = try store.nextBoot(wallSeconds: now.wallSeconds)
        do throws(StoreFault) {
            try store.save(boot: boot)
        } catch {
            noteRefused(.boot, error, "this start is not counted")
        }
    }

    /// Tries again what the disk has refused.
    func settleDebt(_ moment: Moment) {
        guard let due = debt.nextTry, due <= moment, let store else { return }
        for item in debt.items {
            do throws(StoreFault) {
                switch item {
                case .identity: if let identity { try store.change(to: identity) }
                case .configuration: if let present { try store.save(present.stored) }
                case .boot: try store.save(boot: boot)
                }
                debt.written(item)
            } catch {
                if isReplaced(error) { return }
                noteRefused(item, error, "it is tried again")
            }
        }
        if debt.fault == nil { log(.info, "what the disk had refused is written now") }
    }

    /// Stable words: of the state machine, and of the disk.
    var problems: [String] { state.problems + (debt.fault.map { [$0.code] } ?? []) }
}
