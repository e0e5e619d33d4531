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
        .executable(name: "nexusguard-engine", targets: ["nexusguard-engine"])
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

        // Values and texts; no platform in it.
        .target(name: "WireGuard", swiftSettings: swiftSettings),
        // Owner of the CTunnel handle.
        .target(
            name: "TunnelEngine", dependencies: ["CTunnel", "WireGuard"],
            swiftSettings: swiftSettings),
        // Owner of CHostProcess.
        .target(name: "HostProcess", dependencies: ["CHostProcess"], swiftSettings: swiftSettings),
        .executableTarget(
            name: "nexusguard-engine", dependencies: ["TunnelEngine", "HostProcess", "WireGuard"],
            swiftSettings: swiftSettings),

        .testTarget(
            name: "WireGuardTests", dependencies: ["WireGuard"], swiftSettings: swiftSettings),
        .testTarget(
            name: "TunnelEngineTests", dependencies: ["TunnelEngine", "WireGuard"],
            swiftSettings: swiftSettings),
    ]
)
