// swift-tools-version: 6.2
// NexusGuard: a WireGuard gateway. Layout and import rules: ARCHITECTURE.md.
import PackageDescription

let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

let cSettings: [CSetting] = [
    .define("_GNU_SOURCE"),
    .headerSearchPath("."),
    .treatAllWarnings(as: .error),
    .unsafeFlags(["-std=gnu17", "-Wall", "-Wextra", "-fvisibility=hidden"]),
]

let package = Package(
    name: "NexusGuard",
    products: [
        .executable(name: "nexusguard-engine", targets: ["nexusguard-engine"]),
        .executable(name: "nexusguard", targets: ["nexusguard"]),
    ],
    targets: [
        // The data path. Packets live here and nowhere else.
        .target(
            name: "CTunnel",
            path: "CSources/CTunnel",
            cSettings: cSettings + [.unsafeFlags(["-O3"], .when(configuration: .release))],
            linkerSettings: [
                .linkedLibrary("sodium"), .linkedLibrary("crypto"), .linkedLibrary("mnl"),
            ]),
        // Daemonising, confinement, local sockets.
        .target(
            name: "CHostProcess",
            path: "CSources/CHostProcess",
            cSettings: cSettings,
            linkerSettings: [.linkedLibrary("seccomp"), .linkedLibrary("cap")]),
        // Links, addresses, routes, rules and the kernel's WireGuard through netlink.
        .target(
            name: "CNetlink",
            path: "CSources/CNetlink",
            cSettings: cSettings,
            linkerSettings: [.linkedLibrary("mnl")]),

        // Values and texts; no platform in it.
        .target(name: "WireGuard", swiftSettings: swiftSettings),
        // Owner of libsodium and libcrypto for programs that are no data path.
        .systemLibrary(name: "CSodium", path: "CSources/CSodium", pkgConfig: "libsodium"),
        .systemLibrary(name: "CCrypto", path: "CSources/CCrypto", pkgConfig: "libcrypto"),
        .target(
            name: "Crypto", dependencies: ["CCrypto", "CSodium", "WireGuard"],
            swiftSettings: swiftSettings),
        // What device and hub say to each other; no platform in it.
        .target(
            name: "ControlAPI", dependencies: ["Crypto", "WireGuard"],
            swiftSettings: swiftSettings),
        // The machine's TPM, by tpm2-tss, which is loaded at run time.
        .target(name: "CTPM", path: "CSources/CTPM", cSettings: cSettings),
        .target(name: "TrustedPlatform", dependencies: ["CTPM"], swiftSettings: swiftSettings),
        // Owner of the machine's id and the journal.
        .target(name: "Systemd", dependencies: ["CSystemd"], swiftSettings: swiftSettings),
        // Secrets, last good configuration, logs.
        .target(
            name: "Storage",
            dependencies: [
                "Crypto", "HostProcess", "SQLite", "Systemd", "TrustedPlatform", "WireGuard",
            ],
            swiftSettings: swiftSettings),
        // Owner of SQLite.
        .systemLibrary(name: "CSQLite", path: "CSources/CSQLite", pkgConfig: "sqlite3"),
        .target(name: "SQLite", dependencies: ["CSQLite"], swiftSettings: swiftSettings),
        // Owner of the CTunnel handle.
        .target(
            name: "TunnelEngine", dependencies: ["CTunnel", "WireGuard"],
            swiftSettings: swiftSettings),
        // Owner of CHostProcess.
        .target(name: "HostProcess", dependencies: ["CHostProcess"], swiftSettings: swiftSettings),
        .executableTarget(
            name: "nexusguard-engine", dependencies: ["TunnelEngine", "HostProcess", "WireGuard"],
            swiftSettings: swiftSettings),

        // Decides what a tunnel needs of its host and which changes lead there; pure.
        .target(name: "TunnelPlan", dependencies: ["WireGuard"], swiftSettings: swiftSettings),
        // Owner of the host's network: links, addresses, routes, rules, firewall, resolver.
        .systemLibrary(name: "CNFTables", path: "CSources/CNFTables", pkgConfig: "libnftables"),
        .systemLibrary(name: "CSystemd", path: "CSources/CSystemd", pkgConfig: "libsystemd"),
        .target(
            name: "HostNetwork",
            dependencies: ["CNFTables", "CNetlink", "CSystemd", "TunnelPlan", "WireGuard"],
            swiftSettings: swiftSettings),
        // Owner of HTTP: libmicrohttpd serves, libcurl asks.
        .systemLibrary(
            name: "CMicroHTTPD", path: "CSources/CMicroHTTPD", pkgConfig: "libmicrohttpd"),
        .systemLibrary(name: "CGnuTLS", path: "CSources/CGnuTLS", pkgConfig: "gnutls"),
        .target(
            name: "CCurl",
            path: "CSources/CCurl",
            cSettings: cSettings,
            linkerSettings: [
                .linkedLibrary("curl"), .linkedLibrary("ssl"), .linkedLibrary("crypto"),
            ]),
        .target(
            name: "HTTP",
            dependencies: ["CCurl", "CGnuTLS", "CMicroHTTPD", "HostProcess", "WireGuard"],
            swiftSettings: swiftSettings),
        // Who moves the packets: the kernel or the engine.
        .target(
            name: "Backends",
            dependencies: ["Crypto", "HostNetwork", "HostProcess", "TunnelPlan", "WireGuard"],
            swiftSettings: swiftSettings),
        // Applies a desired tunnel, heals, undoes.
        .target(
            name: "Keeper",
            dependencies: ["HostProcess", "TunnelPlan", "WireGuard"], swiftSettings: swiftSettings),
        // The keeper's host as it really is.
        .target(
            name: "LiveHost",
            dependencies: [
                "Backends", "Crypto", "HostNetwork", "HostProcess", "Keeper", "TunnelPlan",
                "WireGuard",
            ],
            swiftSettings: swiftSettings),
        // Keeps a tunnel in step with what a control server wants.
        .target(
            name: "Agent",
            dependencies: [
                "ControlAPI", "Crypto", "HTTP", "HostProcess", "Keeper", "Storage", "TunnelPlan",
                "WireGuard",
            ],
            swiftSettings: swiftSettings),
        // The control server.
        .target(
            name: "Hub",
            dependencies: [
                "ControlAPI", "Crypto", "HTTP", "HostProcess", "Keeper", "SQLite", "Storage",
                "TunnelPlan", "WireGuard",
            ],
            swiftSettings: swiftSettings),
        // A heap that is erased, for programs that see secrets pass.
        .target(name: "CErasingHeap", path: "CSources/CErasingHeap", cSettings: cSettings),
        .executableTarget(
            name: "nexusguard",
            dependencies: [
                "Agent", "Backends", "CErasingHeap", "ControlAPI", "Crypto", "HTTP", "HostProcess",
                "Hub", "Keeper", "LiveHost", "Storage", "Systemd", "TunnelPlan", "WireGuard",
            ],
            swiftSettings: swiftSettings),

        // What the tests of several modules need.
        .target(
            name: "TestSupport", dependencies: ["HostProcess"], path: "Tests/TestSupport",
            swiftSettings: swiftSettings),
        .testTarget(
            name: "WireGuardTests", dependencies: ["TestSupport", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "CryptoTests", dependencies: ["Crypto", "TestSupport", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "HubTests",
            dependencies: [
                "ControlAPI", "Crypto", "HTTP", "HostProcess", "Hub", "SQLite", "TunnelPlan",
                "WireGuard",
            ],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "StorageTests",
            dependencies: [
                "Crypto", "HostProcess", "SQLite", "Storage", "TestSupport", "TrustedPlatform",
                "WireGuard",
            ],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "SQLiteTests", dependencies: ["SQLite", "TestSupport"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "ControlAPITests",
            dependencies: ["ControlAPI", "Crypto", "TestSupport", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "HostProcessTests", dependencies: ["HostProcess", "TestSupport"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "HTTPTests", dependencies: ["HTTP", "HostProcess", "TestSupport", "WireGuard"],
            exclude: ["misbehaving_server.py"], swiftSettings: swiftSettings),
        .testTarget(
            name: "nexusguardTests", dependencies: ["nexusguard", "Crypto", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "TunnelEngineTests", dependencies: ["TunnelEngine", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "HostNetworkTests",
            dependencies: ["CNetlink", "HostNetwork", "HostProcess", "TunnelPlan", "WireGuard"],
            swiftSettings: swiftSettings),
        // What the scripts of Tests/netns drive HostNetwork with.
        .executableTarget(
            name: "host-probe", dependencies: ["HostNetwork", "TunnelPlan", "WireGuard"],
            path: "Tests/HostProbe", swiftSettings: swiftSettings),
        // Drives back-ends and the live host for the scripts of Tests/netns.
        .executableTarget(
            name: "backend-probe",
            dependencies: [
                "Backends", "HostProcess", "Keeper", "LiveHost", "TunnelPlan", "WireGuard",
            ],
            path: "Tests/BackendProbe", swiftSettings: swiftSettings),
        // What Tests/netns/storage.sh drives Storage with.
        .executableTarget(
            name: "storage-probe",
            dependencies: ["HostProcess", "SQLite", "Storage", "Systemd", "TrustedPlatform"],
            path: "Tests/StorageProbe", swiftSettings: swiftSettings),
        .testTarget(
            name: "BackendsTests",
            dependencies: ["Backends", "HostProcess", "TestSupport", "TunnelPlan", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "KeeperTests",
            dependencies: ["Keeper", "HostProcess", "TestSupport", "TunnelPlan", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "LiveHostTests",
            dependencies: [
                "HostNetwork", "HostProcess", "LiveHost", "TestSupport", "TunnelPlan", "WireGuard",
            ],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "AgentTests", dependencies: ["Agent", "ControlAPI", "Crypto", "WireGuard"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "TunnelPlanTests", dependencies: ["TestSupport", "TunnelPlan", "WireGuard"],
            swiftSettings: swiftSettings),
    ]
)
