// SPDX-License-Identifier: Apache-2.0
// What needs rights is made first; then they are given up, all of them.
import HostProcess
import Storage

enum AgentRights {
    /// Whom root becomes; nil when somebody else started this program.
    static func user(_ name: String) throws(AgentFailure) -> User? {
        guard User.isRoot else { return nil }
        if let user = User.named(name) { return user }
        throw AgentFailure(
            1,
            "there is no user \(name) to run as: it parses what a network sends and must not be "
                + "root; run useradd --system --user-group \(name), or name one with --user")
    }

    /// Makes the state directory where it is not there, for that user.
    static func makeStateDirectory(_ path: String, for user: User?) throws(AgentFailure) {
        do throws(StorageError) {
            _ = try StateDirectory(path, owner: user?.number, group: user?.group)
        } catch {
            throw AgentFailure(error.kind == .noPermission ? 4 : 1, error.description)
        }
    }

    static func makeSocketDirectory(_ path: String, for user: User?) throws(AgentFailure) {
        do throws(HostError) {
            try SocketDirectory.make(for: path, owner: user ?? User.current)
        } catch {
            throw AgentFailure(error)
        }
    }

    /// Its members may ask: the group of the keeper's socket.
    static func listener(
        _ path: String, group: UInt32?
    ) throws(AgentFailure) -> Listener {
        do throws(HostError) {
            let listener = try Listener.open(path)
            if let group, User.isRoot { try HostFile.share(path, withGroup: group) }
            // Whoever is a member may as well; who is not keeps it to itself.
            if let group, !User.isRoot { try? HostFile.share(path, withGroup: group) }
            return listener
        } catch {
            throw AgentFailure(error)
        }
    }

    static func giveUp(becoming user: User?) throws(AgentFailure) {
        do throws(HostError) {
            try (user ?? User.current).become()
        } catch {
            throw AgentFailure(error)
        }
    }
}

extension AgentFailure {
    init(_ error: HostError) {
        let code: UInt8 =
            switch error.kind {
            case .noPermission: 4
            case .busy: 8
            case .other: 1
            }
        self.init(code, error.description)
    }
}
