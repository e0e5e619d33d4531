// SPDX-License-Identifier: Apache-2.0
import CTunnel
import Glibc

/// What this host offers a tunnel, and what would help it.
public struct HostOffer: Equatable, Sendable {
    public struct TUN: Equatable, Sendable {
        public var virtioHeader: Bool
        public var tso: Bool
        public var uso: Bool
        public var multiQueue: Bool
    }

    /// A network card.
    public struct Card: Equatable, Sendable {
        public var name: String
        public var receiveQueues: UInt32
        /// Which queue a UDP datagram goes to depends on its ports; nil: the driver does not say.
        public var hashesPorts: Bool?
        public var receiveOffload: Bool?
    }

    public var kernel: String
    /// This process may use.
    public var cpus: UInt32
    public var isX86: Bool
    public var hasAVX2: Bool
    public var udpGSO: Bool
    public var udpGRO: Bool
    /// net.core.rmem_max does not matter: the right to exceed it is there.
    public var mayForceBuffers: Bool
    public var bufferWanted: UInt32
    public var bufferGranted: UInt32
    /// nil: no device could be made to try, for the reason `tunErrno`.
    public var tun: TUN?
    public var tunErrno: Int32
    public var cards: [Card]

    /// Asks the kernel; as root it makes a TUN device for a moment. Changes nothing else.
    public static func probe() -> HostOffer {
        var host = tunnel_host()
        unsafe tunnel_probe_host(&host)
        return HostOffer(host)
    }
}

extension HostOffer {
    fileprivate init(_ host: tunnel_host) {
        var host = host
        kernel = unsafe string(of: &host.kernel)
        cpus = host.cpus
        isX86 = host.x86
        hasAVX2 = host.avx2
        udpGSO = host.udp_gso
        udpGRO = host.udp_gro
        mayForceBuffers = host.buffer_force
        bufferWanted = host.buffer_wanted
        bufferGranted = host.buffer_granted
        tunErrno = host.tun_error
        if host.tun_error == 0 {
            tun = TUN(
                virtioHeader: host.tun_vnet_hdr, tso: host.tun_tso, uso: host.tun_uso,
                multiQueue: host.tun_multi_queue)
        }
        let all: [tunnel_card] = unsafe list(&host.cards)
        cards = all.prefix(Int(host.card_count)).map { Card($0) }
    }
}

extension HostOffer.Card {
    fileprivate init(_ card: tunnel_card) {
        var card = card
        name = unsafe string(of: &card.name)
        receiveQueues = card.receive_queues
        hashesPorts = card.hash_known ? card.hash_has_ports : nil
        receiveOffload = card.gro_known ? card.gro : nil
    }
}

// MARK: advice

/// One thing that limits this host, and what would help.
public struct Advice: Equatable, Sendable {
    /// Stays the same over releases; for programs.
    public var name: String
    public var text: String
}

extension HostOffer {
    /// In order of what each is usually worth; empty when nothing is missing.
    public var advice: [Advice] { processor + kernelFeatures + buffers + cards.flatMap(\.advice) }

    private var processor: [Advice] {
        var list: [Advice] = []
        if isX86 && !hasAVX2 {
            list.append(
                Advice(
                    name: "cpu_without_avx2",
                    text: "the CPU shows no AVX2: encryption takes a slower back-end; in a virtual "
                        + "machine choose a CPU model that has it"))
        }
        if cpus == 1 {
            list.append(
                Advice(
                    name: "one_cpu",
                    text: "one CPU serves both directions and everything else; a second one helps"))
        }
        return list
    }

    private var kernelFeatures: [Advice] {
        var list: [Advice] = []
        if !udpGSO {
            list.append(
                Advice(
                    name: "kernel_without_udp_gso",
                    text: "no UDP segmentation offload (Linux 4.18; off from 7.0 to 7.1.4, which "
                        + "corrupt packets): one system call per packet or group sent"))
        }
        if !udpGRO {
            list.append(
                Advice(
                    name: "kernel_without_udp_gro",
                    text: "no usable UDP receive offload: it takes Linux 5.12"))
        }
        guard let tun else {
            let reason =
                tunErrno == EPERM
                ? "run as root to see what the kernel offers there"
                : unsafe String(cString: strerror(tunErrno))
            list.append(Advice(name: "tun_unknown", text: "no TUN device could be made: \(reason)"))
            return list
        }
        if !tun.virtioHeader || !tun.tso {
            list.append(
                Advice(
                    name: "tun_without_tso",
                    text: "the TUN device has no TCP offload: every inner packet is read and "
                        + "written by itself; a newer kernel helps"))
        } else if !tun.uso {
            list.append(
                Advice(
                    name: "tun_without_uso",
                    text: "the TUN device has no UDP offload: inner UDP (QUIC) costs one read per "
                        + "packet; it takes Linux 6.2"))
        }
        if cpus > 2 && !tun.multiQueue {
            list.append(
                Advice(
                    name: "tun_single_queue",
                    text: "the TUN device has one queue: one worker pair serves all traffic"))
        }
        return list
    }

    private var buffers: [Advice] {
        guard !mayForceBuffers && bufferGranted < bufferWanted else { return [] }
        return [
            Advice(
                name: "small_socket_buffers",
                text: "without CAP_NET_ADMIN a socket gets \(bufferGranted) of \(bufferWanted) "
                    + "bytes of buffer; where the engine runs without it: "
                    + "sysctl -w net.core.rmem_max=\(bufferWanted) net.core.wmem_max=\(bufferWanted)"
            )
        ]
    }
}

extension HostOffer.Card {
    fileprivate var advice: [Advice] {
        var list: [Advice] = []
        if receiveQueues > 1 && hashesPorts == false {
            list.append(
                Advice(
                    name: "card_hash_without_ports",
                    text:
                        "\(name) chooses its receive queue by addresses only, so a peer's packets "
                        + "meet on one CPU: ethtool -N \(name) rx-flow-hash udp4 sdfn"))
        }
        if receiveOffload == false {
            list.append(
                Advice(
                    name: "card_without_gro",
                    text: "\(name) hands packets over one by one: ethtool -K \(name) gro on"))
        }
        return list
    }
}
