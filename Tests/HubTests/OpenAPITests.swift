// SPDX-License-Identifier: Apache-2.0
// docs/openapi.json says what the code does: the same calls, the same fields, the same of them
// required.
import ControlAPI
import FoundationEssentials
import HTTP
import Testing

@testable import Hub

extension JSONValue {
    fileprivate subscript(_ name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    fileprivate var members: [String: JSONValue] {
        if case .object(let members) = self { members } else { [:] }
    }

    fileprivate var strings: [String] {
        guard case .array(let values) = self else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }
}

@Suite struct OpenAPITests {
    private let document: JSONValue

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let file = try Data(contentsOf: root.appending(path: "docs/openapi.json"))
        document = try Wire.decode(JSONValue.self, from: Array(file))
    }

    @Test func theHubServesTheDocument() throws {
        let answer = try TestHub().send("GET", "/api/v1/openapi.json")
        #expect(answer.status == 200)
        #expect(try Wire.decode(JSONValue.self, from: answer.body) == document)
    }

    @Test func everyCallStandsThereWithItsCredential() throws {
        var described: [String: String] = [:]
        for (path, operations) in document["paths"]?.members ?? [:] {
            for (method, operation) in operations.members {
                guard case .array(let schemes)? = operation["security"] else {
                    Issue.record("\(method) \(path) has no security")
                    continue
                }
                described["\(method.uppercased()) \(path)"] =
                    schemes.first?.members.keys.first ?? "open"
            }
        }
        var there: [String: String] = [:]
        for route in Hub.routes {
            there["\(route.method) \(route.path)"] =
                switch route.access {
                case .open: "open"
                case .device: "device"
                case .administrator: "operator"
                }
        }
        #expect(described == there)
    }

    /// All of a type's fields and no others, and those required that decoding requires.
    @Test func everySchemaHasTheFieldsOfItsType() throws {
        let types: [any Decodable.Type] = [
            ProvisionRequest.self, ProvisionAnswer.self, HeartbeatRequest.self,
            HeartbeatAnswer.self, Forward.self, RotateRequest.self,
            TokenAnswer.self, EmptyAnswer.self, ConfigPeer.self, WireGuardConfig.self,
            LoginRequest.self, LoginAnswer.self, TokenRequest.self, TokenView.self,
            DevicePatchRequest.self, DeviceView.self, TunnelView.self, HubSideView.self,
            ForwardRequest.self, ForwardView.self, AlarmView.self, LogView.self, CountsView.self,
            HubView.self, OperatorRequest.self, OperatorView.self, BackupRequest.self,
        ]
        let schemas = try #require(document["components"]?["schemas"]).members
        for type in types {
            let name = "\(type)"
            let schema = try #require(schemas[name], "\(name)")
            let fields = try Fields.of(type)
            #expect(Set(schema["properties"]?.members.keys ?? [:].keys) == fields.all, "\(name)")
            #expect(Set(schema["required"]?.strings ?? []) == fields.required, "\(name)")
        }
        // Made otherwise: pages of lists, the dictionary of settings, a command, whose fields depend
        // on its type, and the problem, which is read leniently and written with these.
        let others = schemas.keys.filter { name in !types.contains { "\($0)" == name } }
        #expect(
            Set(others) == [
                "Problem", "Settings", "DeviceCommand", "TokenPage", "DevicePage", "ForwardPage",
                "AlarmPage",
                "LogPage", "OperatorPage",
            ])
        for name in others where name.hasSuffix("Page") {
            let fields = try Fields.of(Page<LogView>.self)
            #expect(Set(schemas[name]!["required"]!.strings) == fields.all, "\(name)")
        }
        let problem = Wire.encode(Problem(.revoked, detail: "d", deviceId: "i"))
        let members = try Wire.decode(JSONValue.self, from: problem).members
        #expect(Set(members.keys) == Set(schemas["Problem"]!["properties"]!.members.keys))
    }

    @Test func everyCodeStandsThere() {
        let codes = document["components"]?["schemas"]?["Problem"]?["properties"]?["code"]?["enum"]
        #expect(codes?.strings == Problem.Code.allCases.map(\.rawValue))
    }
}
