// SPDX-License-Identifier: Apache-2.0
import Testing

/// `#expect` for loops of many thousand rounds: costs nothing while the condition holds.
public func hold(
    _ condition: Bool, _ note: @autoclosure () -> String = "",
    sourceLocation: SourceLocation = #_sourceLocation
) {
    if !condition {
        Testing.Issue.record("does not hold: \(note())", sourceLocation: sourceLocation)
    }
}

/// What `body` throws, or nil.
public func thrown<Failure: Error>(_ body: () throws(Failure) -> some Any) -> Failure? {
    do throws(Failure) {
        _ = try body()
        return nil
    } catch { return error }
}
