// SPDX-License-Identifier: Apache-2.0
import ControlAPI
import Hub

let hubAlarmCommands = [
    Verb(
        name: "alarm list", summary: "List open alarms, newest first.",
        options: [Option(long: "all", help: "those that are over as well")] + hubClientOptions,
        run: listAlarms),
    Verb(
        name: "alarm acknowledge", operands: "ID", operandCount: 1...1,
        summary: "Say that somebody has seen an alarm.", options: hubClientOptions
    ) { (invocation) throws(Failure) in
        let id = encodedSegment(invocation.operands[0])
        try HubClient(invocation).ask("POST", "/alarms/\(id)/acknowledge")
        return ExitCode.ok
    },
    Verb(
        name: "log", summary: "Show what operators and devices did, newest first.",
        options: [
            Option(long: "device", argument: "DEVICE", help: "only about this device"),
            Option(long: "limit", argument: "N", help: "at most N records (default 100)"),
        ] + hubClientOptions, run: showLog),
]

private func listAlarms(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    let answer = try client.ask(
        "GET", "/alarms",
        query: [("state", invocation.has("all") ? "all" : "open"), ("limit", "500")])
    try invocation.show(answer) { () throws(Failure) in
        let page = try client.decode(Page<AlarmView>.self, answer)
        return columns(
            ["ID", "RAISED", "CLEARED", "SEEN", "ALARM"],
            page.items.map { alarm in
                [
                    "\(alarm.id)", alarm.raised.description, alarm.cleared?.description ?? "",
                    alarm.acknowledged == nil ? "no" : "yes", alarm.text,
                ]
            })
    }
    return ExitCode.ok
}

private func showLog(_ invocation: Invocation) throws(Failure) -> UInt8 {
    let client = try HubClient(invocation)
    var device: String?
    if let text = invocation.values["device"] { device = try client.deviceId(text) }
    let answer = try client.ask(
        "GET", "/logs", query: [("deviceId", device), ("limit", invocation.values["limit"])])
    try invocation.show(answer) { () throws(Failure) in
        try client.decode(Page<LogView>.self, answer).items.map { record in
            let actor = record.actor.isEmpty ? "" : " (\(record.actor))"
            return LogPrinter.visible("\(record.time) \(record.tag): \(record.message)\(actor)")
                + "\n"
        }.joined()
    }
    return ExitCode.ok
}
