// SPDX-License-Identifier: Apache-2.0

extension Database {
    /// The number of steps that `migrate` has done to this file (PRAGMA user_version).
    public func version() throws(SQLiteError) -> Int {
        Int(try rows("PRAGMA user_version").first?.integer("user_version") ?? 0)
    }

    /// Brings the tables to the form of this program. Step *i*, one or more statements, leads from
    /// version *i* to *i* + 1; steps that were ever released are never changed. Each is done as a
    /// whole or not at all. Throws `.newer` and changes nothing when the file has more steps behind
    /// it than there are.
    public func migrate(_ steps: [String]) throws(SQLiteError) {
        while true {
            // Read inside the transaction: two programs may start at once.
            let isDone = try transaction { () throws(SQLiteError) -> Bool in
                let version = try self.version()
                guard version <= steps.count else { throw self.tooNew(version, steps.count) }
                guard version < steps.count else { return true }
                try self.execute(steps[version])
                try self.execute("PRAGMA user_version = \(version + 1)")
                return false
            }
            if isDone { return }
        }
    }

    private func tooNew(_ version: Int, _ known: Int) -> SQLiteError {
        SQLiteError(
            .newer,
            "cannot use the database \(path): its form is version \(version), this program knows "
                + "versions up to \(known)\(SQLiteError.Kind.newer.advice)")
    }
}
