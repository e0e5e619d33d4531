// SPDX-License-Identifier: Apache-2.0
import Glibc

/// What strerror(3) says.
func textOfErrno(_ errno: Int32) -> String {
    guard let text = unsafe strerror(errno) else { return "error \(errno)" }
    return unsafe String(cString: text)
}

extension StringProtocol {
    /// The text after the first `mark`; nil without one.
    func text(after mark: String) -> SubSequence? {
        let mark = mark.utf8
        var start = utf8.startIndex
        while start != utf8.endIndex {
            if utf8[start...].starts(with: mark) {
                return self[utf8.index(start, offsetBy: mark.count)...]
            }
            utf8.formIndex(after: &start)
        }
        return nil
    }
}
